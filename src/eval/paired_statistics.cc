#include "eval/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace octavo {

namespace {

constexpr double kSignificant = 0.05;
constexpr int64_t kChunk = 100;  // resamples of one generator

}  // namespace

double McNemarTest(int64_t only_first, int64_t only_second) {
  const int64_t count = only_first + only_second;
  const int64_t smaller = std::min(only_first, only_second);
  // Of binomial(count, 1/2): the tail up to the smaller number, in logarithms, as 2^-count may be
  // no double.
  double log_term = -static_cast<double>(count) * std::log(2.0);
  double tail = 0;
  for (int64_t k = 0; k <= smaller; ++k) {
    tail += std::exp(log_term);
    log_term += std::log(static_cast<double>(count - k) / static_cast<double>(k + 1));
  }
  return std::min(1.0, 2 * tail);
}

int64_t SmallestSignificant(int64_t disagreements) {
  for (int64_t smaller = disagreements / 2; smaller >= 0; --smaller) {
    if (McNemarTest(smaller, disagreements - smaller) < kSignificant)
      return disagreements - 2 * smaller;
  }
  return 6;  // 2 / 2^6 < 0.05 < 2 / 2^5
}

Interval PairedBootstrap(int64_t documents, uint64_t seed, ThreadPool& pool,
                         const std::function<double(std::span<const size_t>)>& statistic) {
  std::vector<double> values(static_cast<size_t>(kPairedResamples));
  pool.ParallelFor(kPairedResamples / kChunk, [&](int64_t chunk) {
    Rng rng(seed + static_cast<uint64_t>(chunk));
    std::vector<size_t> drawn(static_cast<size_t>(documents));
    for (int64_t i = 0; i < kChunk; ++i) {
      for (size_t& index : drawn)
        index = static_cast<size_t>(rng.Below(static_cast<uint64_t>(documents)));
      values[static_cast<size_t>(chunk * kChunk + i)] = statistic(drawn);
    }
  });
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  return {at(0.025), at(0.975)};
}

}  // namespace octavo
