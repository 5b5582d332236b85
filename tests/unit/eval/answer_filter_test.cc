// What filters keep of an answer and what exact_match accepts, on answers made to trip them.
#include "eval/answer_filter.h"

#include <gtest/gtest.h>

#include "unit/eval/eval_data.h"

namespace octavo {
namespace {

using testing::ReadEvalJson;
using testing::ReadEvalRows;

Value Parse(std::string_view json) {
  return ParseJson(json, "test").value();
}

// The pipelines of gsm8k and gsm8k_cot.
constexpr std::string_view kFilters = R"json({
  "gsm8k/strict-match": "#### (\\-?[0-9\\.\\,]+)",
  "gsm8k/flexible-extract": "(-?[$0-9.,]{2,})|(-?[0-9]+)",
  "gsm8k_cot/strict-match": "The answer is (\\-?[0-9\\.\\,]+).",
  "gsm8k_cot/flexible-extract": "(-?[$0-9.,]{2,})|(-?[0-9]+)"
})json";

AnswerFilter MakeFilter(const std::string& name, const Value& pattern) {
  Value function = Parse(R"({"function": "regex"})");
  function.Set("regex_pattern", pattern);
  if (name.ends_with("flexible-extract")) function.Set("group_select", -1);
  Value config = Value::MakeObject();
  config.Set("name", name);
  config.Set("filter", Value::Array{function, Parse(R"({"function": "take_first"})")});
  return AnswerFilter::FromConfig(config).value();
}

TEST(AnswerFilter, KeepsAndAcceptsWhatLmEvalDoes) {
  const Value targets = ReadEvalJson("gsm8k/filter_targets.json");
  const auto match = ExactMatch::FromConfig(
      Parse(R"({"metric": "exact_match", "aggregation": "mean", "higher_is_better": true,
                "ignore_case": true, "ignore_punctuation": false,
                "regexes_to_ignore": [",", "\\$", "(?s).*#### ", "\\.$"]})"));
  ASSERT_OK(match);
  const std::vector<Value> rows = ReadEvalRows("gsm8k/filters.jsonl");
  const Value filters = Parse(kFilters);
  for (const auto& [name, pattern] : filters.as_object()) {
    const AnswerFilter filter = MakeFilter(name, pattern);
    for (const Value& row : rows) {
      const std::string& response = row.Find("response")->as_string();
      SCOPED_TRACE(name + ": " + JsonString(response));
      const auto kept = filter.Apply(response);
      ASSERT_OK(kept);
      EXPECT_EQ(*kept, row.Find("filtered")->Find(name)->as_string());
      Value hits = Value::MakeArray();
      for (size_t i = 0; i < targets.as_array().size(); ++i) {
        if (match->Equal(*kept, targets.as_array()[i].as_string()).value())
          hits.as_array().push_back(static_cast<int64_t>(i));
      }
      EXPECT_EQ(hits, *row.Find("exact_match")->Find(name));
    }
  }
}

TEST(AnswerFilter, NoneKeepsAllAndAMatchThatIsNotThereFallsBack) {
  EXPECT_EQ(AnswerFilter::None().Apply(" 7 ").value(), " 7 ");
  const auto second = AnswerFilter::FromConfig(
      Parse(R"({"name": "second", "filter": [{"function": "regex", "regex_pattern": "[0-9]",
                "group_select": 1, "fallback": "?"}]})"));
  ASSERT_OK(second);
  EXPECT_EQ(second->Apply("1 and 2").value(), "2");
  EXPECT_EQ(second->Apply("1").value(), "?");
}

TEST(AnswerFilter, WhatIsNotImplementedIsNamed) {
  const auto vote = AnswerFilter::FromConfig(
      Parse(R"({"name": "maj", "filter": [{"function": "majority_vote"}]})"));
  EXPECT_EQ(vote.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(vote.status().message().find("majority_vote"), std::string::npos);
  const auto numbers = ExactMatch::FromConfig(Parse(R"({"ignore_numbers": true})"));
  EXPECT_EQ(numbers.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace octavo
