#include "eval/paired_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace octavo {
namespace {

TEST(McNemar, IsTheBinomialTailDoubled) {
  EXPECT_EQ(McNemarTest(0, 0), 1);
  EXPECT_EQ(McNemarTest(7, 7), 1);
  EXPECT_NEAR(McNemarTest(6, 0), 2.0 / 64, 1e-12);
  EXPECT_NEAR(McNemarTest(2, 10), 2.0 * (1 + 12 + 66) / 4096, 1e-12);
  EXPECT_EQ(McNemarTest(2, 10), McNemarTest(10, 2));
}

TEST(McNemar, LargeCountsDoNotUnderflow) {
  // By the normal approximation with its correction for continuity.
  const double z = (200 - 1) / std::sqrt(4000.0);
  EXPECT_NEAR(McNemarTest(1900, 2100), std::erfc(z / std::sqrt(2.0)), 1e-5);
}

TEST(McNemar, SmallestSignificantIsWhereTheTestTurns) {
  EXPECT_EQ(SmallestSignificant(20), 10);  // 5 to 15: 0.041, 6 to 14: 0.115
  for (const int64_t few : {0, 1, 5, 6}) EXPECT_EQ(SmallestSignificant(few), 6) << few;
  for (const int64_t count : {7, 50, 333}) {
    const int64_t difference = SmallestSignificant(count);
    EXPECT_EQ((count - difference) % 2, 0);
    const int64_t smaller = (count - difference) / 2;
    EXPECT_LT(McNemarTest(smaller, count - smaller), 0.05);
    EXPECT_GE(McNemarTest(smaller + 1, count - smaller - 1), 0.05);
  }
}

TEST(PairedBootstrap, IsAsWideAsTheErrorOfAMean) {
  ThreadPool pool(2);
  const auto mean_of_halves = [](std::span<const size_t> drawn) {
    double sum = 0;
    for (const size_t index : drawn) sum += index % 2 == 0 ? 1 : 0;
    return sum / static_cast<double>(drawn.size());
  };
  const Interval interval = PairedBootstrap(400, 1, pool, mean_of_halves);
  EXPECT_NEAR(interval.low, 0.5 - 1.96 * 0.5 / 20, 0.006);
  EXPECT_NEAR(interval.high, 0.5 + 1.96 * 0.5 / 20, 0.006);
}

TEST(PairedBootstrap, IsTheSameForAnyNumberOfThreads) {
  ThreadPool one(1);
  ThreadPool three(3);
  const auto statistic = [](std::span<const size_t> drawn) {
    return static_cast<double>(std::accumulate(drawn.begin(), drawn.end(), size_t{0}));
  };
  const Interval a = PairedBootstrap(30, 7, one, statistic);
  const Interval b = PairedBootstrap(30, 7, three, statistic);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_LT(a.low, a.high);
  EXPECT_NE(a.low, PairedBootstrap(30, 1007, one, statistic).low) << "the seed counts";
}

}  // namespace
}  // namespace octavo
