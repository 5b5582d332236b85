#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/file.h"

namespace octavo {
namespace {

using namespace std::string_literals;

Value Parse(std::string_view text) {
  Result<Value> value = ParseJson(text, "test");
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  return value.ok() ? *value : Value();
}

std::string Error(std::string_view text, const JsonLimits& limits = {}) {
  const Result<Value> value = ParseJson(text, "a.json", limits);
  if (value.ok()) return "";
  EXPECT_EQ(value.status().code(), StatusCode::kCorruptFile);
  return value.status().message();
}

TEST(ParseJson, KeepsTypesAndOrder) {
  const Value value = Parse(R"({"z": [1, 1.0, -0, true, null], "a": {"b": "c"}})");
  ASSERT_TRUE(value.is_object());
  EXPECT_EQ(value.as_object()[0].first, "z");
  const Value::Array& items = value.Find("z")->as_array();
  EXPECT_TRUE(items[0].is_int());
  EXPECT_TRUE(items[1].is_float());
  EXPECT_TRUE(items[2].is_int());
  EXPECT_TRUE(items[3].is_bool());
  EXPECT_TRUE(items[4].is_null());
  EXPECT_EQ(value.Find("a")->Find("b")->as_string(), "c");
}

TEST(ParseJson, IntegersBeyondInt64BecomeDoubles) {
  EXPECT_EQ(Parse("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(Parse("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(Parse("9223372036854775808"), Value(9223372036854775808.0));
  EXPECT_EQ(Parse("18446744073709551616"), Value(18446744073709551616.0));
  EXPECT_EQ(Parse("-9223372036854775809"), Value(-9223372036854775809.0));
}

TEST(ParseJson, DecodesEscapes) {
  EXPECT_EQ(Parse(R"("\u00e9\ud83d\ude00\n\u0000")").as_string(), "é😀\n\0"s);
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const std::string& text :
       {""s,    " "s,        "{"s,     "[1,]"s,        "{\"a\" 1}"s, "{a: 1}"s,
        "'a'"s, "[1] 2"s,    "01"s,    "+1"s,          ".5"s,        "1."s,
        "NaN"s, "Infinity"s, "1e999"s, "// c\n1"s,     "\"\n\""s,    "\"\\x41\""s,
        "nul"s, "[1"s,       "]"s,     "\"\\ud800\""s, "{}\0x"s,     "{}\0"s,
        "\0"s,  "\"a\0b\""s}) {
    EXPECT_NE(Error(text), "") << text;
  }
}

TEST(ParseJson, SaysWhere) {
  EXPECT_EQ(Error("[1, x]").substr(0, 32), "a.json: not valid JSON: byte 5: ");
}

TEST(ParseJson, RefusesDuplicateKeysOnEveryLevel) {
  EXPECT_NE(Error(R"({"a": 1, "b": 2, "a": 3})").find("\"a\" occurs twice"), std::string::npos);
  EXPECT_NE(Error(R"([{"x": {"a": 1, "\u0061": 2}}])").find("occurs twice"), std::string::npos);
  EXPECT_EQ(Error(R"({"a": {"a": 1}, "b": {"a": 1}})"), "");
}

TEST(ParseJson, RefusesInvalidUtf8) {
  for (const std::string_view bytes :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_NE(Error("[\"" + std::string(bytes) + "\"]"), "");
  }
  EXPECT_EQ(Error("[\"\xC3\xA9\xF0\x9F\x98\x80\"]"), "");
}

TEST(ParseJson, LimitsDepth) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  EXPECT_EQ(Error(nested(128)), "");
  EXPECT_NE(Error(nested(129)).find("nested deeper than 128 levels"), std::string::npos);
  EXPECT_NE(Error(std::string(5'000'000, '[')), "");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(Error(objects), "");
}

TEST(ParseJson, LimitsBytes) {
  EXPECT_NE(Error("[1, 2, 3]", {.max_bytes = 8}).find("9 bytes of JSON, at most 8"),
            std::string::npos);
  EXPECT_EQ(Error("[1, 2, 3]", {.max_bytes = 9}), "");
}

// What Python 3.11's repr prints.
TEST(PythonFloat, IsRepr) {
  const struct {
    double value;
    const char* text;
  } kVectors[] = {
      {0x1.999999999999ap-4, "0.1"},
      {0x1.4f8b588e368f1p-17, "1e-05"},
      {0x1.1c37937e08000p+53, "1e+16"},
      {0x1.c6bf526340000p+49, "1000000000000000.0"},
      {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
      {0x1.1c37937e07fffp+53, "9999999999999998.0"},
      {0x1.a36e2eb1c432dp-14, "0.0001"},
      {0x1.a36371ea531a8p-14, "9.999e-05"},
      {0x0.0000000000001p-1022, "5e-324"},
      {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
      {-0x0.0p+0, "-0.0"},
      {0x1.0000000000000p+0, "1.0"},
      {0x1.9000000000000p+6, "100.0"},
      {0x1.0f0cf064dd592p+73, "1e+22"},
      {0x1.5555555555555p-1, "0.6666666666666666"},
      {0x1.bf647612f3696p-19, "3.3333333333333333e-06"},
      {0x1.0000000000000p-60, "8.673617379884035e-19"},
      {0x1.fffffe0000000p+127, "3.4028234663852886e+38"},
      {0x1.0000000000000p+52, "4503599627370496.0"},
  };
  for (const auto& vector : kVectors) {
    EXPECT_EQ(PythonFloat(vector.value), vector.text);
    EXPECT_EQ(Parse(vector.text).as_double(), vector.value) << vector.text;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(PythonFloat(infinity), "inf");
  EXPECT_EQ(PythonFloat(-infinity), "-inf");
  EXPECT_EQ(PythonFloat(std::nan("")), "nan");
}

TEST(WriteJson, IsJsonDumps) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Value value = Value::Array{1, 1.0, true, nullptr, infinity, -infinity, std::nan(""), "x"};
  EXPECT_EQ(WriteJson(value), R"([1, 1.0, true, null, Infinity, -Infinity, NaN, "x"])");
}

TEST(WriteJson, SortsAndIndentsAsPythonDoes) {
  const Value value = Parse(R"({"b": 1, "a": [], "€": {}, "Z": [1, {"x": null}]})");
  EXPECT_EQ(WriteJson(value, {.indent = 2, .sort_keys = true, .ensure_ascii = true}),
            R"({
  "Z": [
    1,
    {
      "x": null
    }
  ],
  "a": [],
  "b": 1,
  "\u20ac": {}
})");
}

TEST(WriteJson, GivesARealConfigBackByteForByte) {
  const Result<std::string> text = ReadFile(OCTAVO_SOURCE_DIR "/data/stories260k/config.json");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  std::string written = WriteJson(Parse(*text), {.indent = 2});
  if (text->ends_with('\n')) written += '\n';
  EXPECT_EQ(written, *text);
}

TEST(JsonString, EscapesAsPythonDoes) {
  const std::string text = "\x7F€😀\x01/\"\\\n\b\f\r\t";
  EXPECT_EQ(JsonString(text, true), R"("\u007f\u20ac\ud83d\ude00\u0001/\"\\\n\b\f\r\t")");
  EXPECT_EQ(JsonString(text), "\"\x7F€😀\\u0001/\\\"\\\\\\n\\b\\f\\r\\t\"");
}

// Generated text may end inside a character: what is written is valid JSON all the same.
TEST(JsonString, ReplacesInvalidUtf8) {
  for (const std::string_view bytes : {"\xE2\x82", "\xE2", "\x80", "\xF0\x9F\x98", "\xC0\xAF",
                                       "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
    for (const bool ascii : {false, true}) {
      const std::string written = JsonString("a" + std::string(bytes) + "\"b", ascii);
      const Value value = Parse(written);
      ASSERT_TRUE(value.is_string()) << written;
      EXPECT_TRUE(value.as_string().starts_with("a\xEF\xBF\xBD")) << written;
      EXPECT_TRUE(value.as_string().ends_with("\"b")) << written;
    }
  }
}

}  // namespace
}  // namespace octavo
