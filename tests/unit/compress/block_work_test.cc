#include "compress/block_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compress/layer_error.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TestContext;

const std::vector<float> kX = {1, -2, 3, 0.5F, 4, -1, -3, 1, 2};  // [3, 3]

InputStatistics Statistics(const std::vector<float>& x, const Context& context) {
  InputStatistics statistics;
  statistics.Add({x.data(), 3, 3, 3}, {.channel_range = true, .hessian = true}, context);
  statistics.Finish(context);
  return statistics;
}

TEST(InputStatistics, RangesAndHessianOfAllTokens) {
  const TestContext test(1);
  InputStatistics statistics = Statistics(kX, test.context);
  EXPECT_EQ(statistics.tokens, 3);
  EXPECT_EQ(statistics.minimum, (std::vector<float>{-3, -2, -1}));
  EXPECT_EQ(statistics.maximum, (std::vector<float>{1, 4, 3}));
  const auto h = statistics.hessian.data<float>();
  EXPECT_FLOAT_EQ(h[0], 2 * (1 + 0.25F + 9));
  EXPECT_FLOAT_EQ(h[1], 2 * (-2 + 2 - 3));
  EXPECT_FLOAT_EQ(h[1], h[3]);
}

// Smoothing divides the input: the statistics of x / s follow from those of x.
TEST(InputStatistics, DividingEqualsObservingTheDividedInput) {
  const TestContext test(1);
  const std::vector<float> s = {2, 0.5F, 4};
  std::vector<float> divided = kX;
  for (size_t i = 0; i < divided.size(); ++i) divided[i] /= s[i % 3];
  InputStatistics expected = Statistics(divided, test.context);
  InputStatistics found = Statistics(kX, test.context);
  found.DivideInput(s);
  EXPECT_EQ(found.minimum, expected.minimum);
  EXPECT_EQ(found.maximum, expected.maximum);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(found.hessian.data<float>()[i], expected.hessian.data<float>()[i], 1e-5) << i;
  }
}

TEST(OutputEnergy, IsTheSquaredOutputOverTheTokens) {
  const TestContext test(1);
  const InputStatistics statistics = Statistics(kX, test.context);
  const std::vector<float> d = {1, 0, 2, -1, 0.5F, 1};  // [2, 3]
  double expected = 0;
  for (int token = 0; token < 3; ++token) {
    for (int row = 0; row < 2; ++row) {
      double y = 0;
      for (int j = 0; j < 3; ++j) {
        y += static_cast<double>(kX[static_cast<size_t>(3 * token + j)]) *
             static_cast<double>(d[static_cast<size_t>(3 * row + j)]);
      }
      expected += y * y;
    }
  }
  EXPECT_NEAR(OutputEnergy(d, 2, 3, statistics.hessian.data<float>(), test.context), expected,
              1e-4 * expected);
}

}  // namespace
}  // namespace octavo
