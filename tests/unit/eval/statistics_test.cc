// Aggregates and standard errors against those of lm-evaluation-harness.
#include "eval/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/eval/eval_data.h"

namespace octavo {
namespace {

using testing::ReadEvalJson;
using testing::TestContext;

std::vector<double> Doubles(const Value& list) {
  std::vector<double> doubles;
  for (const Value& value : list.as_array()) doubles.push_back(value.as_double());
  return doubles;
}

double Number(const Value& object, std::string_view key) {
  return object.Find(key)->as_double();
}

TEST(Statistics, MeansAndTheirErrors) {
  const Value golden = ReadEvalJson("statistics/stderr.json");
  for (const char* name : {"mean", "mean_of_two"}) {
    const Value& vector = *golden.Find(name);
    const std::vector<double> values = Doubles(*vector.Find("values"));
    EXPECT_DOUBLE_EQ(Mean(values), Number(vector, "mean"));
    EXPECT_DOUBLE_EQ(MeanStderr(values).value(), Number(vector, "stderr"));
  }
  EXPECT_FALSE(MeanStderr(std::vector<double>{1}).has_value());
}

TEST(Statistics, PerplexityIsBootstrappedInChunks) {
  const TestContext context;
  const Value vector = *ReadEvalJson("statistics/stderr.json").Find("perplexity");
  const std::vector<double> values = Doubles(*vector.Find("values"));
  EXPECT_NEAR(PerplexityOf(values), Number(vector, "perplexity"), 1e-12);
  for (const auto& [iterations, expected] : vector.Find("stderr_by_bootstrap_iters")->as_object()) {
    const auto found = PerplexityStderr(values, std::stoll(iterations), context.context.pool);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(*found, expected.as_double(), 1e-9 * expected.as_double()) << iterations;
  }
  EXPECT_FALSE(PerplexityStderr(std::vector<double>{-1}, 1000, context.context.pool).has_value());
}

TEST(Statistics, SumsAreDividedOnce) {
  const Value vector = *ReadEvalJson("statistics/stderr.json").Find("weighted");
  std::vector<WeightedLoglikelihood> documents;
  for (const Value& pair : vector.Find("values")->as_array())
    documents.push_back({pair.as_array()[0].as_double(), pair.as_array()[1].as_int()});
  EXPECT_NEAR(WeightedPerplexity(documents), Number(vector, "weighted_perplexity"), 1e-12);
  EXPECT_NEAR(BitsPerByte(documents), Number(vector, "bits_per_byte"), 1e-14);
}

TEST(Statistics, GroupsArePooled) {
  const Value vector = *ReadEvalJson("statistics/stderr.json").Find("group");
  std::vector<GroupPart> parts;
  for (size_t i = 0; i < vector.Find("sizes")->as_array().size(); ++i) {
    parts.push_back({vector.Find("metrics")->as_array()[i].as_double(),
                     vector.Find("stderrs")->as_array()[i].as_double(),
                     vector.Find("sizes")->as_array()[i].as_int()});
  }
  EXPECT_DOUBLE_EQ(GroupMean(parts, true), Number(vector, "weighted_mean"));
  EXPECT_DOUBLE_EQ(GroupStderr(parts, true).value(), Number(vector, "weighted_stderr"));
  EXPECT_DOUBLE_EQ(GroupMean(parts, false), Number(vector, "plain_mean"));
  EXPECT_DOUBLE_EQ(GroupStderr(parts, false).value(), Number(vector, "plain_stderr"));
  parts[1].stderr_of_mean = std::nullopt;
  EXPECT_FALSE(GroupStderr(parts, true).has_value());
}

}  // namespace
}  // namespace octavo
