// Choosing the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "octavo/generation.h"
#include "octavo/sampling_params.h"

namespace octavo {

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

// The same; InvalidArgument when a logit is NaN or the largest is infinite: the model computes
// nonsense.
Result<int32_t> CheckedArgmax(std::span<const float> logits);

// Greedy for temperature 0, else a draw from FilterLogits. Results depend on logits and the
// generator's state alone.
int32_t SampleToken(std::span<const float> logits, const SamplingParams& params, Rng* rng);

// What was said so far, as the penalties count it.
class TokenHistory {
 public:
  explicit TokenHistory(std::span<const int32_t> prompt);
  // One more generated token.
  void Add(int32_t token);
  // The penalties, before all filters and in vLLM's order. Repetition, as transformers has it: a
  // logit of a token of the prompt or the answer is divided by the penalty where it is positive,
  // multiplied where it is not. Then, as OpenAI has them, for tokens of the answer alone: logit -=
  // frequency_penalty * occurrences + presence_penalty. Returns whether there is any penalty.
  bool Penalize(const SamplingParams& params, std::span<float> logits) const;

 private:
  std::unordered_map<int32_t, int64_t> generated_;  // occurrences in the answer; 0: in the prompt
};

// Of `token`, with the `top_count` most likely tokens.
TokenLogprob ComputeLogprob(std::span<const float> logits, int32_t token, int64_t top_count);

}  // namespace octavo
