#include "eval/windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace octavo {
namespace {

std::vector<TokenId> Text(int64_t length) {
  std::vector<TokenId> tokens(static_cast<size_t>(length));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// How often each text token is scored.
std::vector<int> Scored(const std::vector<Window>& windows, int64_t length) {
  std::vector<int> scored(static_cast<size_t>(length));
  for (const Window& window : windows) {
    for (size_t i = static_cast<size_t>(window.first_scored); i < window.tokens.size(); ++i) {
      ++scored[static_cast<size_t>(window.tokens[i])];
    }
  }
  return scored;
}

TEST(Windows, WholeWindowsWithoutOverlapScoreAllButTheirFirstToken) {
  const auto windows = CutWindows(Text(26), {.window = 8, .stride = 8}).value();
  ASSERT_EQ(windows.size(), 3U);  // 26 tokens hold three; the rest is dropped
  EXPECT_EQ(windows[1].tokens, (std::vector<TokenId>{8, 9, 10, 11, 12, 13, 14, 15}));
  const std::vector<int> scored = Scored(windows, 26);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(scored[static_cast<size_t>(i)], i % 8 == 0 ? 0 : 1) << i;
}

TEST(Windows, OverlapScoresEachTokenOnce) {
  const auto windows = CutWindows(Text(20), {.window = 8, .stride = 4}).value();
  const std::vector<int> scored = Scored(windows, 20);
  EXPECT_EQ(scored[0], 0);
  for (size_t i = 1; i < 20; ++i) EXPECT_EQ(scored[i], 1) << i;
}

TEST(Windows, BosStandsBeforeEachWindowAndItsFirstTokenIsScored) {
  const auto windows = CutWindows(Text(21), {.window = 8, .stride = 8, .bos = 99}).value();
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[1].tokens, (std::vector<TokenId>{99, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(Scored(windows, 100), [] {
    std::vector<int> all(100, 0);
    std::fill_n(all.begin(), 21, 1);
    return all;
  }());
}

TEST(Windows, AShortTextIsOneWindow) {
  const auto windows = CutWindows(Text(5), {.window = 8, .stride = 8}).value();
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].tokens.size(), 5U);
}

TEST(Windows, MaxWindowsIsKept) {
  EXPECT_EQ(CutWindows(Text(100), {.window = 8, .stride = 8, .max_windows = 2})->size(), 2U);
}

TEST(Windows, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(CutWindows(Text(100), {.window = 1, .stride = 1}).ok());
  EXPECT_FALSE(CutWindows(Text(100), {.window = 8, .stride = 0}).ok());
  EXPECT_FALSE(CutWindows(Text(100), {.window = 8, .stride = 9}).ok());
  EXPECT_FALSE(CutWindows(Text(1), {.window = 8, .stride = 8}).ok());
  EXPECT_FALSE(CutWindows(Text(0), {.window = 8, .stride = 8}).ok());
}

TEST(LogSumExp, DoesNotOverflow) {
  EXPECT_NEAR(LogSumExp(std::vector<float>{1000, 1000}), 1000 + std::log(2.0), 1e-9);
  EXPECT_NEAR(LogSumExp(std::vector<float>{-1000, -1000, -1000}), -1000 + std::log(3.0), 1e-9);
}

}  // namespace
}  // namespace octavo
