#include "base/rng.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace octavo {
namespace {

// The standard fixes mt19937_64: its 10000th output from the default seed 5489.
TEST(Rng, StandsOnTheStandardsEngine) {
  std::mt19937_64 engine;
  engine.discard(9999);
  EXPECT_EQ(engine(), 9981545732273789042U);
}

TEST(Rng, DrawsTheSameOnEveryMachine) {
  Rng rng(5489);
  // The first outputs of mt19937_64 from seed 5489 are 14514284786278117030, 4620546740167642908,
  // 13109570281517897720 (Matsumoto and Nishimura's reference file).
  EXPECT_EQ(rng.Uniform(), static_cast<double>(14514284786278117030U >> 11) * 0x1p-53);
  EXPECT_EQ(rng.Below(1000), 4620546740167642908U % 1000);
  EXPECT_EQ(rng.Below(1000), 13109570281517897720U % 1000);
}

TEST(Rng, UniformStaysBelowOne) {
  Rng rng(1);
  double least = 1;
  double greatest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double draw = rng.Uniform();
    least = std::min(least, draw);
    greatest = std::max(greatest, draw);
  }
  EXPECT_GE(least, 0.0);
  EXPECT_LT(least, 0.001);
  EXPECT_LT(greatest, 1.0);
  EXPECT_GT(greatest, 0.999);
}

TEST(Rng, BelowReachesAllEvenly) {
  Rng rng(2);
  std::vector<int> counts(7);
  for (int i = 0; i < 70'000; ++i) ++counts[rng.Below(7)];
  for (int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_EQ(rng.Below(1), 0U);
}

TEST(Rng, PermutationHoldsEachOnceAndKeepsItsOrder) {
  std::vector<int64_t> order = Rng(3).Permutation(10);
  EXPECT_EQ(order, Rng(3).Permutation(10));
  EXPECT_NE(order, Rng(4).Permutation(10));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(Rng(5).Permutation(0).empty());
}

}  // namespace
}  // namespace octavo
