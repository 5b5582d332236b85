// Snippets of Jinja against what transformers' environment answers (tests/data/jinja).
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>

#include "base/json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/unicode.h"

namespace octavo {
namespace {

// What the engine refuses with "unsupported" although Jinja can do it: integers beyond 64 bits (12,
// 13, 251), \N{...} (50), wordwrap (172), random (225), bytes (287).
constexpr int64_t kUnsupported[] = {12, 13, 50, 172, 225, 251, 287};

std::tm Clock() {
  std::tm now{};
  now.tm_year = 2025 - 1900;
  now.tm_mon = 2;
  now.tm_mday = 7;
  now.tm_hour = 9;
  now.tm_min = 5;
  now.tm_sec = 3;
  now.tm_wday = 5;
  now.tm_yday = 65;
  return now;
}

Result<jinja::Rendered> Render(const std::string& source, const Value& context,
                               bool* compiled = nullptr) {
  auto parsed = jinja::Template::Compile(source);
  if (compiled != nullptr) *compiled = parsed.ok();
  if (!parsed.ok()) return parsed.status();
  return parsed->Render(context, Clock());
}

void CheckSpans(const Value& expected, const jinja::Rendered& rendered) {
  ASSERT_EQ(expected.as_array().size(), rendered.generation_spans.size());
  for (size_t i = 0; i < rendered.generation_spans.size(); ++i) {
    const auto [begin, end] = rendered.generation_spans[i];
    const auto count = [&](int64_t bytes) {
      return static_cast<int64_t>(
          CountCodePoints(rendered.text.substr(0, static_cast<size_t>(bytes))));
    };
    EXPECT_EQ(expected.as_array()[i].as_array()[0].as_int(), count(begin));
    EXPECT_EQ(expected.as_array()[i].as_array()[1].as_int(), count(end));
  }
}

void CheckSnippet(const Value& row) {
  const int64_t id = row.Find("id")->as_int();
  const std::string& source = row.Find("template")->as_string();
  SCOPED_TRACE("snippet " + std::to_string(id) + ": " + source);
  bool compiled = false;
  const auto rendered = Render(source, *row.Find("context"), &compiled);
  if (std::count(std::begin(kUnsupported), std::end(kUnsupported), id) != 0) {
    ASSERT_FALSE(rendered.ok()) << rendered->text;
    EXPECT_EQ(rendered.status().code(), StatusCode::kUnsupported) << rendered.status().message();
  } else if (const Value* output = row.Find("output")) {
    ASSERT_TRUE(rendered.ok()) << rendered.status().ToString();
    EXPECT_EQ(output->as_string(), rendered->text);
    if (const Value* spans = row.Find("generation_spans")) CheckSpans(*spans, *rendered);
  } else {
    ASSERT_FALSE(rendered.ok()) << "printed: " << rendered->text;
    EXPECT_EQ(row.Find("error")->Find("stage")->as_string() == "render", compiled)
        << rendered.status().ToString();
    EXPECT_EQ(rendered.status().message().substr(0, 5), "line ") << rendered.status().ToString();
  }
}

TEST(JinjaSnippets, AnswerAsTransformersDoes) {
  std::ifstream file(OCTAVO_TEST_DATA "/jinja/snippets.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    auto row = ParseJson(line, "snippets.jsonl");
    ASSERT_TRUE(row.ok()) << row.status().message();
    CheckSnippet(*row);
  }
  EXPECT_EQ(count, 553);
}

}  // namespace
}  // namespace octavo
