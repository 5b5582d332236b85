#include "base/yaml.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "base/json.h"

namespace octavo {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value Parse(std::string_view text) {
  Result<Value> value = ParseYaml(text, "test");
  EXPECT_TRUE(value.ok()) << text << "\n" << value.status().ToString();
  return value.ok() ? *value : Value();
}

std::string Error(std::string_view text, const YamlLimits& limits = {}) {
  const Result<Value> value = ParseYaml(text, "r.yaml", limits);
  if (value.ok()) return "";
  EXPECT_EQ(value.status().code(), StatusCode::kCorruptFile);
  return value.status().message();
}

#define EXPECT_ERROR(text, part) \
  EXPECT_NE(Error(text).find(part), std::string::npos) << "got: " << Error(text)

std::string Repeat(int times, std::string_view text) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Checked against PyYAML 6.0.3's safe_load, except where the last column says otherwise.
TEST(ParseYaml, ResolvesScalarsAsPyYaml) {
  const struct {
    const char* text;
    Value value;
    const char* difference = "";
  } kVectors[] = {
      {"08", "08"},
      {"0o17", "0o17"},
      {"017", 15},
      {"0x1F", 31},
      {"-0x1F", -31},
      {"0_7", 7},
      {"1_000", 1000},
      {"_1", "_1"},
      {"-_1", "-_1"},
      {"1_000.5", 1000.5},
      {"+1.5", 1.5},
      {"+-1.5", "+-1.5"},
      {"-inf", "-inf"},
      {"-nan(1)", "-nan(1)"},
      {"-.inf", -kInfinity},
      {"+.INF", kInfinity},
      {".5", 0.5},
      {"1.", 1.0},
      {"1.5e+3", 1500.0},
      {"1.5e3", 1500.0, "text in PyYAML"},
      {"1e-5", 1e-5, "text in PyYAML"},
      {"1e", "1e"},
      {".e5", ".e5"},
      {"-0", 0},
      {"0", 0},
      {"0.8", 0.8},
      {"12345678901234567890", 12345678901234567890.0, "an int in PyYAML"},
      {"-9223372036854775808", INT64_MIN},
      {"on", true},
      {"No", false},
      {"y", "y"},
      {"~", nullptr},
      {"", nullptr},
      {".", "."},
      {"+", "+"},
      {"0x", "0x"},
      {"1.5.2", "1.5.2"},
      {"1:30", "1:30", "90 in PyYAML"},
      {"2001-12-14", "2001-12-14", "a date in PyYAML"},
      {"0b11", "0b11", "3 in PyYAML"},
      {"'1'", "1"},
      {"\"true\"", "true"},
      {"!!str 1", "1"},
      {"!!int '3'", 3},
      {"!!float 3", 3.0},
      {"!!null ''", nullptr},
      {"W8A8", "W8A8"},
      {"re:.*q_proj$", "re:.*q_proj$"},
  };
  for (const auto& vector : kVectors) {
    EXPECT_EQ(Parse("k: " + std::string(vector.text)), Value(Value::Object{{"k", vector.value}}))
        << vector.text;
  }
  EXPECT_TRUE(std::isnan(Parse(".nan").as_double()));
}

TEST(ParseYaml, ReadsARecipe) {
  const Value recipe = Parse(R"(# a comment
quant_stage:
  quant_modifiers:
    SmoothQuantModifier:
      smoothing_strength: 0.8
      mappings:
      - !!python/tuple
        - ['re:.*q_proj', "re:.*k_proj"]
        - re:.*input_layernorm
    GPTQModifier: {targets: [Linear], ignore: [lm_head], scheme: W8A8, }
)");
  EXPECT_EQ(
      WriteJson(recipe),
      R"({"quant_stage": {"quant_modifiers": {"SmoothQuantModifier": )"
      R"({"smoothing_strength": 0.8, "mappings": [[["re:.*q_proj", "re:.*k_proj"], )"
      R"("re:.*input_layernorm"]]}, )"
      R"("GPTQModifier": {"targets": ["Linear"], "ignore": ["lm_head"], "scheme": "W8A8"}}}})");
}

TEST(ParseYaml, EmptyTextsAreNull) {
  EXPECT_TRUE(Parse("").is_null());
  EXPECT_TRUE(Parse("# nothing\n").is_null());
  EXPECT_TRUE(Parse("---\n").is_null());
}

TEST(ParseYaml, KeysAreStrings) {
  EXPECT_EQ(WriteJson(Parse("1: a\ntrue: b\n~: c\n2.5: d\n? e\n: f\n")),
            R"({"1": "a", "true": "b", "null": "c", "2.5": "d", "e": "f"})");
}

TEST(ParseYaml, ExpandsAliases) {
  EXPECT_EQ(WriteJson(Parse("a: &x [1, 2]\nb: *x\nc: &x 3\nd: *x\n")),
            R"({"a": [1, 2], "b": [1, 2], "c": 3, "d": 3})");
  EXPECT_EQ(WriteJson(Parse("&k a: 1\nb: *k\n")), R"({"a": 1, "b": "a"})");
}

TEST(ParseYaml, RefusesCyclesAndUnknownAnchors) {
  EXPECT_ERROR("a: &x [1, *x]", "line 1, column 11: an alias that contains itself");
  EXPECT_ERROR("&x a: *x\n&y {b: *y}", "line");
  EXPECT_ERROR("&x {a: {b: *x}}", "contains itself");
  EXPECT_ERROR("a: *nowhere", "anchor");
}

TEST(ParseYaml, RefusesAliasBombs) {
  std::string nodes = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string one = "*a" + std::to_string(i - 1) + ", ";
    nodes += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + Repeat(10, one) + "]\n";
  }
  EXPECT_ERROR(nodes, "more than 100000 nodes after aliases are expanded");
  // Few nodes of many bytes.
  EXPECT_ERROR("a: &a " + std::string(500'000, 'x') + "\nb: [" + Repeat(90'000, "*a,") + "]",
               "more than 100000 nodes");
  // Few levels in the text, many after expansion.
  std::string levels = "a0: &a0 [x]\n";
  for (int i = 1; i < 100; ++i) {
    levels += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
              std::to_string(i - 1) + "]\n";
  }
  EXPECT_ERROR(levels, "nested deeper than 64 levels");
  // Anchors around anchors: each would keep a copy.
  std::string copies;
  for (int i = 0; i < 60; ++i) copies += "[&c" + std::to_string(i) + " ";
  EXPECT_ERROR(copies + "[" + Repeat(90'000, "1,") + "]" + Repeat(60, "]"),
               "more than 100000 nodes");
}

TEST(ParseYaml, RefusesDuplicateKeys) {
  EXPECT_ERROR("a: 1\nb: 2\na: 3\n", "line 3, column 1: the key \"a\" occurs twice");
  EXPECT_ERROR("x: {a: 1, 'a': 2}", "occurs twice");
  EXPECT_ERROR("a: &k b\nx: {b: 1, *k : 2}", "occurs twice");
}

TEST(ParseYaml, RefusesWhatWouldBeMisread) {
  EXPECT_ERROR("? [a, b]\n: 1\n", "a key is a list or a mapping");
  EXPECT_ERROR("{a: 1}: 2", "a key is a list or a mapping");
  EXPECT_ERROR("b: &b {x: 1}\na:\n  <<: *b\n", "merge keys");
  EXPECT_ERROR("a: 1\n---\nb: 2\n", "more than one document");
  EXPECT_ERROR("a: !!python/object/apply:os.system ['ls']", "python/object/apply:os.system");
  EXPECT_ERROR("a: !!python/object/apply:str x", "is not read here");
  EXPECT_ERROR("a: !local x", "!local");
  EXPECT_ERROR("a: !!binary aGk=", "binary");
  EXPECT_ERROR("a: !!set {b, c}", "set");
  EXPECT_ERROR("a: !!int x", "int");
  EXPECT_ERROR("a: !!python/tuplex [1]", "tuplex");
  EXPECT_ERROR(std::string_view("a: 1\n\x04garbage: [", 15), "control character, byte 0x04");
  EXPECT_ERROR(std::string_view("a: \0", 4), "control character");
}

TEST(ParseYaml, RefusesSyntaxErrorsWithTheirPlace) {
  EXPECT_ERROR("a: [1, 2\nb: 3", "r.yaml: line ");
  EXPECT_ERROR("a: 'x", "r.yaml: line ");
  EXPECT_ERROR("a: b: c", "r.yaml: line 1");
  EXPECT_ERROR("a:\n\t- b", "r.yaml: line ");
  EXPECT_ERROR("@", "r.yaml: line 1");
  EXPECT_ERROR("]", "r.yaml: line 1");
}

TEST(ParseYaml, LimitsDepthWithoutDeepRecursion) {
  EXPECT_EQ(Error(Repeat(64, "[") + Repeat(64, "]")), "");
  EXPECT_ERROR(Repeat(65, "[") + Repeat(65, "]"), "nested deeper than 64 levels");
  for (const char* opening : {"[", "{", "{a: ", "[[], ", "- ", "? ", "a: ", "? - ", "[? ", "{? ",
                              "[a: ", "!!seq [", "&a [", "- ? ", "*a ", "!x "}) {
    EXPECT_NE(Error(Repeat(20'000, opening)), "") << opening;
  }
  std::string indented;
  for (size_t i = 0; i < 1000; ++i) indented += std::string(i, ' ') + "a:\n";
  EXPECT_NE(Error(indented), "");
}

TEST(ParseYaml, LimitsBytesAndNodes) {
  EXPECT_NE(Error("[1, 2, 3]", {.max_bytes = 8}), "");
  EXPECT_NE(Error("[1, 2, 3]", {.max_nodes = 3}), "");
  EXPECT_EQ(Error("[1, 2, 3]", {.max_nodes = 4}), "");
  EXPECT_ERROR("[" + Repeat(200'000, "1,") + "]", "more than 100000 nodes");
}

TEST(ParseYaml, ManyKeysTakeNoQuadraticTime) {
  std::string text;
  for (int i = 0; i < 45'000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Parse(text).as_object().size(), 45'000U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(WriteYaml, IsReadBackAsWritten) {
  const Value value = Value::Object{
      {"text", "W8A8"},
      {"regex", "re:.*\\d+$"},
      {"quote", "it's"},
      {"lines", "a\nb\x01\x7F"},
      {"looks",
       Value::Array{"1",    "1.5", "true", "null", "~",   "",    "-", "-x",    "1e5", "2001-01-01",
                    "1:30", "<<",  "=",    "a: b", "# c", "[x]", "é", " pad ", "0o1", "y"}},
      {"numbers", Value::Array{1, -5, 1.0, 1e-5, 1e16, -0.0, kInfinity, -kInfinity, INT64_MIN}},
      {"flags", Value::Array{true, false, nullptr}},
      {"empty", Value::Array{Value::MakeArray(), Value::MakeObject(), "x"}},
      {"no members", Value::MakeObject()},
      {"no items", Value::MakeArray()},
      {"nested",
       Value::Array{Value::Array{Value::Array{"a", "b"}, Value::Array{}},
                    Value::Object{{"c", Value::Object{{"d", Value::Array{1}}}}, {"e", 2}}}},
      {"true", 1},
      {"12", 2},
      {"odd: key", 3}};
  const std::string text = WriteYaml(value);
  EXPECT_EQ(Parse(text), value) << text;
}

TEST(WriteYaml, LooksLikeARecipe) {
  const Value value =
      Value::Object{{"QuantizationModifier", Value::Object{{"targets", Value::Array{"Linear"}},
                                                           {"ignore", Value::Array{"re:.*lm_head"}},
                                                           {"dampening_frac", 1e-5}}}};
  EXPECT_EQ(WriteYaml(value),
            "QuantizationModifier:\n  targets: [Linear]\n  ignore: ['re:.*lm_head']\n"
            "  dampening_frac: 1.0e-05\n");
}

}  // namespace
}  // namespace octavo
