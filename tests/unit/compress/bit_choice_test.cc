#include "compress/bit_choice.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "base/rng.h"

namespace octavo {
namespace {

using Units = std::vector<std::vector<BitOption>>;

Units RandomUnits(size_t units, size_t options, uint64_t seed) {
  Rng rng(seed);
  Units made(units);
  for (auto& unit : made) {
    for (size_t o = 0; o < options; ++o)
      unit.push_back({.bits = static_cast<int64_t>(rng.Below(1000)) + 1, .kl = rng.Uniform()});
  }
  return made;
}

// Calls `visit` with the sums of every combination.
template <typename Visit>
void ForEachCombination(const Units& units, const Visit& visit) {
  std::vector<size_t> options(units.size(), 0);
  while (true) {
    BitChoice sums;
    for (size_t u = 0; u < units.size(); ++u) {
      sums.bits += units[u][options[u]].bits;
      sums.kl += units[u][options[u]].kl;
    }
    visit(sums);
    size_t u = 0;
    while (u < units.size() && ++options[u] == units[u].size()) options[u++] = 0;
    if (u == units.size()) return;
  }
}

void ExpectSumsFit(const Units& units, const BitChoice& choice) {
  BitChoice sums;
  ASSERT_EQ(choice.options.size(), units.size());
  for (size_t u = 0; u < units.size(); ++u) {
    sums.bits += units[u].at(choice.options[u]).bits;
    sums.kl += units[u].at(choice.options[u]).kl;
  }
  EXPECT_EQ(sums.bits, choice.bits);
  EXPECT_NEAR(sums.kl, choice.kl, 1e-12);
}

TEST(BitChoice, EqualsTryingEveryCombination) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Units units = RandomUnits(6, 4, seed);
    for (const int64_t max_bits : {1500, 2500, 3500}) {
      double least = std::numeric_limits<double>::infinity();
      ForEachCombination(units, [&](const BitChoice& sums) {
        if (sums.bits <= max_bits) least = std::min(least, sums.kl);
      });
      const auto choice = ChooseLeastLoss(units, max_bits);
      ASSERT_EQ(choice.ok(), std::isfinite(least)) << seed;
      if (!choice.ok()) continue;
      EXPECT_LE(choice->bits, max_bits);
      EXPECT_NEAR(choice->kl, least, 1e-12) << seed;
      ExpectSumsFit(units, *choice);
    }
    for (const double max_kl : {1.0, 2.0, 3.0}) {
      int64_t fewest = std::numeric_limits<int64_t>::max();
      ForEachCombination(units, [&](const BitChoice& sums) {
        if (sums.kl <= max_kl) fewest = std::min(fewest, sums.bits);
      });
      const auto choice = ChooseLeastBits(units, max_kl);
      ASSERT_EQ(choice.ok(), fewest != std::numeric_limits<int64_t>::max()) << seed;
      if (!choice.ok()) continue;
      EXPECT_LE(choice->kl, max_kl + 1e-12);
      EXPECT_EQ(choice->bits, fewest) << seed;
      ExpectSumsFit(units, *choice);
    }
  }
}

// Where the loss falls fastest for its bits, bits go.
TEST(BitChoice, TheSensitiveUnitGetsTheBits) {
  const Units units = {
      {{400, 0.01}, {800, 0.001}}, {{400, 0.5}, {800, 0.002}}, {{400, 0.02}, {800, 0.001}}};
  const auto choice = ChooseLeastLoss(units, 1600);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->options, (std::vector<size_t>{0, 1, 0}));
  EXPECT_EQ(ChooseLeastLoss(units, 2400)->options, (std::vector<size_t>{1, 1, 1}));
  EXPECT_EQ(ChooseLeastBits(units, 10)->options, (std::vector<size_t>{0, 0, 0}));
}

// Of more units than states can be kept of: never beyond the size, and next to the bound that
// splitting units would give.
TEST(BitChoice, ManyUnitsComeNearTheBound) {
  Rng rng(7);
  Units units;
  double small_loss = 0;
  int64_t small_bits = 0;
  std::vector<std::pair<double, int64_t>> gains;  // loss a bit, bits
  for (int u = 0; u < 300; ++u) {
    const auto weights = static_cast<int64_t>(rng.Below(1'000'000)) + 1000;
    const double loss = rng.Uniform() * rng.Uniform();
    units.push_back({{4 * weights, loss}, {8 * weights, loss / 100}});
    small_loss += loss;
    small_bits += 4 * weights;
    gains.emplace_back(0.99 * loss / static_cast<double>(4 * weights), 4 * weights);
  }
  const int64_t max_bits = small_bits + small_bits / 4;
  std::sort(gains.rbegin(), gains.rend());
  double bound = small_loss;
  int64_t left = max_bits - small_bits;
  for (const auto& [gain, bits] : gains) {
    const int64_t spent = std::min(left, bits);
    bound -= gain * static_cast<double>(spent);
    left -= spent;
  }
  const auto choice = ChooseLeastLoss(units, max_bits);
  ASSERT_TRUE(choice.ok());
  EXPECT_LE(choice->bits, max_bits);
  EXPECT_GE(choice->kl, bound - 1e-9);
  EXPECT_LE(choice->kl, bound + 0.002 * small_loss);
  ExpectSumsFit(units, *choice);
}

TEST(BitChoice, WhatCannotBeMetIsSaidWithWhatCan) {
  const Units units = {{{400, 0.01}, {800, 0.001}}, {{400, 0.5}, {800, 0.002}}};
  const auto small = ChooseLeastLoss(units, 799);
  ASSERT_FALSE(small.ok());
  EXPECT_NE(small.status().message().find("800"), std::string::npos);
  const auto exact = ChooseLeastBits(units, 0.001);
  ASSERT_FALSE(exact.ok());
  EXPECT_NE(exact.status().message().find("0.003"), std::string::npos);
}

}  // namespace
}  // namespace octavo
