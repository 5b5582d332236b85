#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

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
  EXPECT_TRUE(CheckLogits(std::vector<float>{1, -infinity}).ok()) << "a masked token";
  EXPECT_FALSE(CheckLogits(std::vector<float>{1, std::nanf("")}).ok());
  EXPECT_FALSE(CheckLogits(std::vector<float>{1, infinity}).ok());
  EXPECT_FALSE(CheckLogits(std::vector<float>{-infinity, -infinity}).ok());
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
