// What a model predicts at one position, and how far another model's prediction is from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace octavo {

inline constexpr size_t kTopTokens = 5;

struct Prediction {
  // The most likely tokens, best first; of equal ones the first. -1 behind a vocabulary's end.
  std::array<int32_t, kTopTokens> top = {};
  float largest = 0;  // logit
  double sum = 0;     // of exp(logit - largest), in double; NaN or infinite where a logit is

  // log sum exp of the logits.
  double log_normalizer() const;
  // Of the most likely token.
  double top_probability() const { return 1 / sum; }
};

// `exponentials` [vocab] gets exp(logit - largest), unless it is empty.
Prediction Predict(std::span<const float> logits, std::span<float> exponentials);

// KL(base || model) in nats, summed in double; `base_exponentials` are of Predict.
double KlDivergence(std::span<const float> base_logits, std::span<const float> base_exponentials,
                    const Prediction& base, std::span<const float> model_logits,
                    const Prediction& model);

// How many of one's most likely tokens are among the other's.
int CommonTopTokens(const Prediction& a, const Prediction& b);

}  // namespace octavo
