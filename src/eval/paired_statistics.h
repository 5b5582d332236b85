// Statistics of two models on the same questions: McNemar's exact test and the paired bootstrap.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/thread_pool.h"

namespace octavo {

// Two-sided p of McNemar's exact test: of the questions that only one of two models answered right,
// that they fall no more evenly, were each as likely to be either's. 1 where there are none.
double McNemarTest(int64_t only_first, int64_t only_second);

// The smallest difference of those two numbers that the test calls significant at 5 % where the
// models disagree on `disagreements` questions: six, all one way, where they are fewer.
int64_t SmallestSignificant(int64_t disagreements);

struct Interval {
  double low = 0;
  double high = 0;
};

inline constexpr int64_t kPairedResamples = 10'000;

// The percentiles 2.5 and 97.5 of a statistic over resamples: `statistic` gets as many indices of
// documents as there are, drawn with replacement, the same for both models. Resamples i * 100 to i
// * 100 + 99 are drawn by Rng(seed + i), so the interval does not depend on the number of threads.
// `statistic` is called from several threads.
Interval PairedBootstrap(int64_t documents, uint64_t seed, ThreadPool& pool,
                         const std::function<double(std::span<const size_t>)>& statistic);

}  // namespace octavo
