#include "eval/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "eval/python_random.h"

namespace octavo {

namespace {

// Of at least two values.
double SampleDeviation(std::span<const double> values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double WeightedMean(std::span<const WeightedLoglikelihood> documents) {
  double sum = 0;
  int64_t weight = 0;
  for (const WeightedLoglikelihood& document : documents) {
    sum += document.loglikelihood;
    weight += document.weight;
  }
  return sum / static_cast<double>(weight);
}

}  // namespace

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> MeanStderr(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  return SampleDeviation(values) / std::sqrt(static_cast<double>(values.size()));
}

double PerplexityOf(std::span<const double> loglikelihoods) {
  return std::exp(-Mean(loglikelihoods));
}

std::optional<double> PerplexityStderr(std::span<const double> loglikelihoods, int64_t iterations,
                                       ThreadPool& pool) {
  constexpr int64_t kChunk = 1000;
  if (loglikelihoods.size() < 2 || iterations < 2) return std::nullopt;
  const int64_t chunk = std::min(kChunk, iterations);
  const int64_t count = std::ssize(loglikelihoods);
  std::vector<double> resampled(static_cast<size_t>(iterations / chunk * chunk));
  pool.ParallelFor(iterations / chunk, [&](int64_t index) {
    PythonRandom random(static_cast<uint64_t>(index));
    for (int64_t i = 0; i < chunk; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < count; ++k)
        sum += loglikelihoods[static_cast<size_t>(random.Choice(count))];
      resampled[static_cast<size_t>(index * chunk + i)] =
          std::exp(-(sum / static_cast<double>(count)));
    }
  });
  return SampleDeviation(resampled);
}

double WeightedPerplexity(std::span<const WeightedLoglikelihood> documents) {
  return std::exp(-WeightedMean(documents));
}

double BitsPerByte(std::span<const WeightedLoglikelihood> documents) {
  return -WeightedMean(documents) / std::log(2.0);
}

double GroupMean(std::span<const GroupPart> parts, bool by_size) {
  double sum = 0;
  int64_t size = 0;
  for (const GroupPart& part : parts) {
    const int64_t weight = by_size ? part.size : 1;
    sum += part.mean * static_cast<double>(weight);
    size += weight;
  }
  return sum / static_cast<double>(size);
}

std::optional<double> GroupStderr(std::span<const GroupPart> parts, bool by_size) {
  double sum = 0;
  int64_t size = 0;
  for (const GroupPart& part : parts) {
    if (!part.stderr_of_mean) return std::nullopt;
    const double squared = *part.stderr_of_mean * *part.stderr_of_mean;
    const auto n = static_cast<double>(part.size);
    sum += by_size ? (n - 1) * squared * n : squared;
    size += part.size;
  }
  if (!by_size) return std::sqrt(sum) / static_cast<double>(parts.size());
  const auto total = static_cast<double>(size);
  return std::sqrt(sum / (total - static_cast<double>(parts.size())) / total);
}

}  // namespace octavo
