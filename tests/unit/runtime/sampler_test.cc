#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

// A vector of the goldens: a list, or {size, rest, pairs} where most elements are `rest`. "-inf" is
// spelt as a string.
std::vector<double> ReadVector(const Value& json) {
  const auto number = [](const Value& value) {
    if (value.is_number()) return value.as_double();
    return value.as_string() == "-inf" || value.as_string() == "-Infinity"
               ? -std::numeric_limits<double>::infinity()
               : std::nan("");
  };
  std::vector<double> values;
  if (json.is_array()) {
    for (const Value& value : json.as_array()) values.push_back(number(value));
    return values;
  }
  values.assign(static_cast<size_t>(json.Find("size")->as_int()), number(*json.Find("rest")));
  for (const Value& pair : json.Find("pairs")->as_array()) {
    values[static_cast<size_t>(pair.as_array()[0].as_int())] = number(pair.as_array()[1]);
  }
  return values;
}

std::vector<Value> ReadLines(const std::string& path) {
  std::ifstream file(testing::TestData(path));
  std::vector<Value> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(ParseJson(line, path).value());
  return rows;
}

bool CutsThroughEqualLogits(const std::vector<float>& logits,
                            const std::vector<double>& probabilities) {
  float least_kept = std::numeric_limits<float>::infinity();
  float largest_dropped = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (probabilities[i] > 0)
      least_kept = std::min(least_kept, logits[i]);
    else
      largest_dropped = std::max(largest_dropped, logits[i]);
  }
  return least_kept == largest_dropped;
}

TEST(Sampler, FiltersAsTransformersDoes) {
  std::map<std::string, std::vector<float>> logits;
  for (const Value& row : ReadLines("sampling/logits.jsonl")) {
    const std::vector<double> values = ReadVector(*row.Find("values"));
    logits[row.Find("name")->as_string()] = std::vector<float>(values.begin(), values.end());
  }
  const std::vector<Value> cases = ReadLines("sampling/cases.jsonl");
  ASSERT_EQ(cases.size(), 74U);
  for (const Value& row : cases) {
    SCOPED_TRACE(row.Find("logits")->as_string() + " " + WriteJson(*row.Find("parameters")));
    const Value& parameters = *row.Find("parameters");
    SamplingParams params{.temperature = parameters.GetDouble("temperature", 1.0).value(),
                          .top_k = parameters.GetInt("top_k", 0).value(),
                          .top_p = parameters.GetDouble("top_p", 1.0).value(),
                          .min_p = parameters.GetDouble("min_p", 0.0).value()};
    const std::vector<double> expected = ReadVector(*row.Find("probabilities"));
    std::vector<double> found(expected.size(), 0.0);
    for (const Candidate& candidate :
         FilterLogits(logits.at(row.Find("logits")->as_string()), params)) {
      found[static_cast<size_t>(candidate.token)] = candidate.probability;
    }
    std::vector<double> wanted = expected;
    // Which of several equal tokens a cut keeps depends on an unstable sort there: compare values,
    // not places.
    if (CutsThroughEqualLogits(logits.at(row.Find("logits")->as_string()), expected)) {
      std::sort(found.begin(), found.end());
      std::sort(wanted.begin(), wanted.end());
    }
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 2e-6 + 2e-5 * wanted[i]) << i;
  }
}

// Rows of the goldens whose parameters are all ours: the history they count is in setup.json.
TEST(Sampler, PenalizesAsTransformersAndVllmDo) {
  std::map<std::string, std::vector<float>> logits;
  for (const Value& row : ReadLines("sampling/logits.jsonl")) {
    const std::vector<double> values = ReadVector(*row.Find("values"));
    logits[row.Find("name")->as_string()] = std::vector<float>(values.begin(), values.end());
  }
  const std::string setup_path = testing::TestData("sampling/setup.json").string();
  const Value setup = ParseJson(ReadFile(setup_path).value(), setup_path).value();
  std::vector<int32_t> said;
  for (const Value& token : setup.Find("history")->as_array())
    said.push_back(static_cast<int32_t>(token.as_int()));
  const auto prompt_length = static_cast<size_t>(setup.Find("prompt_length")->as_int());

  const std::vector<Value> cases = ReadLines("sampling/penalties.jsonl");
  ASSERT_EQ(cases.size(), 26U);
  for (const Value& row : cases) {
    SCOPED_TRACE(row.Find("logits")->as_string() + " " + WriteJson(*row.Find("parameters")));
    const Value& parameters = *row.Find("parameters");
    const SamplingParams params{
        .temperature = parameters.GetDouble("temperature", 1.0).value(),
        .top_p = parameters.GetDouble("top_p", 1.0).value(),
        .repetition_penalty = parameters.GetDouble("repetition_penalty", 1.0).value(),
        .frequency_penalty = parameters.GetDouble("frequency_penalty", 0.0).value(),
        .presence_penalty = parameters.GetDouble("presence_penalty", 0.0).value()};
    std::vector<float> penalized = logits.at(row.Find("logits")->as_string());
    const std::span<const int32_t> all(said);
    TokenHistory history(all.first(prompt_length));
    for (const int32_t token : all.subspan(prompt_length)) history.Add(token);
    history.Penalize(params, penalized);
    std::vector<double> found(penalized.size(), 0.0);
    for (const Candidate& candidate : FilterLogits(penalized, params))
      found[static_cast<size_t>(candidate.token)] = candidate.probability;
    const std::vector<double> wanted = ReadVector(*row.Find("probabilities"));
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 2e-6 + 2e-5 * wanted[i]) << i;
  }
}

TEST(Sampler, LogprobsAreThoseOfTheSoftmax) {
  const std::vector<float> logits = {1, 3, 2, 3};
  const TokenLogprob found = ComputeLogprob(logits, 2, 3);
  const double log_sum = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0));
  EXPECT_NEAR(found.logprob, 2 - log_sum, 1e-12);
  ASSERT_EQ(found.top.size(), 3U);
  EXPECT_EQ(found.top[0].token, 1);
  EXPECT_EQ(found.top[1].token, 3);
  EXPECT_EQ(found.top[2].token, 2);
  EXPECT_NEAR(found.top[0].logprob, 3 - log_sum, 1e-12);
  EXPECT_EQ(ComputeLogprob(logits, 0, 100).top.size(), 4U);
  EXPECT_TRUE(ComputeLogprob(logits, 0, 0).top.empty());
}

TEST(Sampler, TheLargestIsFoundWhereverItIs) {
  for (const size_t size : {1U, 15U, 17U, 1024U, 1025U, 5000U}) {
    for (const size_t place : {size_t{0}, size / 2, size - 1}) {
      std::vector<float> logits(size, -2.0F);
      logits[place] = -1.0F;
      EXPECT_EQ(Argmax(logits), static_cast<int32_t>(place)) << size;
      ASSERT_OK(CheckedArgmax(logits));
      EXPECT_EQ(*CheckedArgmax(logits), static_cast<int32_t>(place)) << size;
      logits[place] = std::nanf("");
      EXPECT_FALSE(CheckedArgmax(logits).ok()) << size << " " << place;
    }
  }
}

TEST(Sampler, TemperatureZeroTakesTheFirstOfTheLargest) {
  const std::vector<float> logits = {1, 3, 2, 3};
  Rng rng(7);
  EXPECT_EQ(SampleToken(logits, {}, &rng), 1);
}

TEST(Sampler, OneSeedGivesOneSequence) {
  const std::vector<float> logits = {0, 0.5, 1, 0.25, 0.75};
  const SamplingParams params{.temperature = 1};
  const auto draw = [&](uint64_t seed) {
    Rng rng(seed);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 64; ++i) tokens.push_back(SampleToken(logits, params, &rng));
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {0, std::log(3.0F)};
  Rng rng(3);
  int ones = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) ones += SampleToken(logits, {.temperature = 1}, &rng);
  EXPECT_NEAR(static_cast<double>(ones) / kDraws, 0.75, 0.02);  // more than six standard deviations
}

TEST(Sampler, LogitsThatAreNotNumbersAreRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(CheckedArgmax(std::vector<float>{1, -infinity}).ok()) << "a masked token";
  EXPECT_FALSE(CheckedArgmax(std::vector<float>{1, std::nanf("")}).ok());
  EXPECT_FALSE(CheckedArgmax(std::vector<float>{1, infinity}).ok());
  EXPECT_FALSE(CheckedArgmax(std::vector<float>{-infinity, -infinity}).ok());
}

TEST(Sampler, BadParametersAreNamed) {
  const auto message = [](const SamplingParams& params) { return params.Check().message(); };
  EXPECT_EQ(message({}), "");
  EXPECT_NE(message({.temperature = -1}).find("temperature is -1"), std::string::npos);
  EXPECT_NE(message({.temperature = std::nan("")}).find("temperature"), std::string::npos);
  EXPECT_NE(message({.top_k = -2}).find("top-k"), std::string::npos);
  EXPECT_NE(message({.top_p = 0}).find("top-p"), std::string::npos);
  EXPECT_NE(message({.min_p = 1.5}).find("min-p"), std::string::npos);
}

}  // namespace
}  // namespace octavo
