// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "base/status.h"

namespace octavo {

struct SamplingParams {
  double temperature = 0;  // 0: greedy
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double min_p = 0;
  uint64_t seed = 0;

  // InvalidArgument names the parameter, its value and its range.
  Status Check() const;
};

// A token and what is left of its probability.
struct Candidate {
  int32_t token;
  double probability;
};

// The filters in transformers' order: temperature, top_k, top_p, min_p, each on the softmax of what
// the one before left; then normalized. top_k keeps all that tie with the k-th; top_p keeps the
// smallest set that reaches p, at least one; min_p drops what is below min_p x the largest. Sorted
// by falling probability, ties by token. temperature > 0.
std::vector<Candidate> FilterLogits(std::span<const float> logits, const SamplingParams& params);

// The token of the largest logit; of equal ones the first.
int32_t Argmax(std::span<const float> logits);

// InvalidArgument when a logit is NaN or the largest is infinite: the model computes nonsense.
Status CheckLogits(std::span<const float> logits);

// Greedy for temperature 0, else a draw from FilterLogits. Results depend on logits and the
// generator's state alone.
int32_t SampleToken(std::span<const float> logits, const SamplingParams& params, Rng* rng);

}  // namespace octavo
