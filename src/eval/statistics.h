// Means, perplexities and their standard errors, in lm-evaluation-harness's formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/thread_pool.h"

namespace octavo {

double Mean(std::span<const double> values);
// Sample standard deviation (n - 1) over sqrt(n); nothing for fewer than two values.
std::optional<double> MeanStderr(std::span<const double> values);

// exp(-mean): `loglikelihoods` are of documents, not of tokens.
double PerplexityOf(std::span<const double> loglikelihoods);
// Sample standard deviation of the perplexity of `iterations` resamples, in chunks of 1,000, chunk
// i drawn by PythonRandom(i); an incomplete last chunk is dropped. Nothing for fewer than two
// values or resamples.
std::optional<double> PerplexityStderr(std::span<const double> loglikelihoods, int64_t iterations,
                                       ThreadPool& pool);

// A sum of log-likelihoods and what it is divided by: words or bytes.
struct WeightedLoglikelihood {
  double loglikelihood;
  int64_t weight;
};
// Sums over all documents, divided once.
double WeightedPerplexity(std::span<const WeightedLoglikelihood> documents);
double BitsPerByte(std::span<const WeightedLoglikelihood> documents);

// One task of a group.
struct GroupPart {
  double mean;
  std::optional<double> stderr_of_mean;
  int64_t size;
};
// Weighted by size, or each alike.
double GroupMean(std::span<const GroupPart> parts, bool by_size);
// Pooled: sqrt(sum((n - 1) n s^2) / (sum n - parts) / sum n); not by size: sqrt(sum s^2) / parts.
// Nothing when a part has none.
std::optional<double> GroupStderr(std::span<const GroupPart> parts, bool by_size);

}  // namespace octavo
