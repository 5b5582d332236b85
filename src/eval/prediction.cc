#include "eval/prediction.h"

#include <algorithm>
#include <cmath>

namespace octavo {

namespace {

// Tokens of the largest logits, found in one pass.
std::array<int32_t, kTopTokens> TopTokens(std::span<const float> logits) {
  std::array<int32_t, kTopTokens> top;
  top.fill(-1);
  size_t found = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (found == kTopTokens && !(logits[i] > logits[static_cast<size_t>(top.back())])) continue;
    size_t place = found < kTopTokens ? found++ : kTopTokens - 1;
    for (; place > 0 && logits[i] > logits[static_cast<size_t>(top[place - 1])]; --place)
      top[place] = top[place - 1];
    top[place] = static_cast<int32_t>(i);
  }
  return top;
}

}  // namespace

double Prediction::log_normalizer() const {
  return static_cast<double>(largest) + std::log(sum);
}

Prediction Predict(std::span<const float> logits, std::span<float> exponentials) {
  Prediction prediction;
  prediction.top = TopTokens(logits);
  prediction.largest = logits[static_cast<size_t>(prediction.top.front())];
  for (size_t i = 0; i < logits.size(); ++i) {
    const float exponential = std::exp(logits[i] - prediction.largest);
    prediction.sum += static_cast<double>(exponential);
    if (!exponentials.empty()) exponentials[i] = exponential;
  }
  return prediction;
}

double KlDivergence(std::span<const float> base_logits, std::span<const float> base_exponentials,
                    const Prediction& base, std::span<const float> model_logits,
                    const Prediction& model) {
  // sum p (log p - log q) with both logits taken from their largest: what is left to cancel is
  // small.
  const double base_largest = static_cast<double>(base.largest);
  const double model_largest = static_cast<double>(model.largest);
  double sum = 0;
  for (size_t i = 0; i < base_logits.size(); ++i) {
    sum += static_cast<double>(base_exponentials[i]) *
           ((static_cast<double>(base_logits[i]) - base_largest) -
            (static_cast<double>(model_logits[i]) - model_largest));
  }
  return sum / base.sum - std::log(base.sum) + std::log(model.sum);
}

int CommonTopTokens(const Prediction& a, const Prediction& b) {
  int common = 0;
  for (const int32_t token : a.top) {
    if (token >= 0 && std::find(b.top.begin(), b.top.end(), token) != b.top.end()) ++common;
  }
  return common;
}

}  // namespace octavo
