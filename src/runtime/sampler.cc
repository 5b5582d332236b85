#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace octavo {

namespace {

void Normalize(std::vector<Candidate>* candidates) {
  double sum = 0;
  for (const Candidate& candidate : *candidates) sum += candidate.probability;
  for (Candidate& candidate : *candidates) candidate.probability /= sum;
}

bool MoreLikely(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

}  // namespace

Status SamplingParams::Check() const {
  const auto refuse = [](std::string_view name, double value, std::string_view range) {
    return InvalidArgument(fmt::format("{} is {}; {} is expected", name, value, range));
  };
  if (!(temperature >= 0) || !std::isfinite(temperature))
    return refuse("temperature", temperature, "0 or more");
  if (top_k < 0) return refuse("top-k", static_cast<double>(top_k), "0 (off) or more");
  if (!(top_p > 0 && top_p <= 1)) return refuse("top-p", top_p, "more than 0, at most 1");
  if (!(min_p >= 0 && min_p <= 1)) return refuse("min-p", min_p, "0 (off) to 1");
  return OkStatus();
}

std::vector<Candidate> FilterLogits(std::span<const float> logits, const SamplingParams& params) {
  OCTAVO_CHECK(params.temperature > 0 && !logits.empty());
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<Candidate> kept(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double scaled = (static_cast<double>(logits[i]) - largest) / params.temperature;
    kept[i] = {static_cast<int32_t>(i), std::exp(scaled)};
  }
  // Only as many as matter are sorted: a vocabulary has 50,000 tokens and more.
  if (params.top_k > 0 && params.top_k < std::ssize(kept)) {
    const auto kth = kept.begin() + (params.top_k - 1);
    std::nth_element(kept.begin(), kth, kept.end(), MoreLikely);
    const double least = kth->probability;
    std::erase_if(kept, [&](const Candidate& candidate) { return candidate.probability < least; });
  }
  std::sort(kept.begin(), kept.end(), MoreLikely);
  Normalize(&kept);
  if (params.top_p < 1) {
    double sum = 0;
    size_t count = 0;
    while (count < kept.size() && (count == 0 || sum < params.top_p))
      sum += kept[count++].probability;
    kept.resize(count);
    Normalize(&kept);
  }
  if (params.min_p > 0) {
    const double least = params.min_p * kept.front().probability;
    std::erase_if(kept, [&](const Candidate& candidate) { return candidate.probability < least; });
    Normalize(&kept);
  }
  return kept;
}

int32_t Argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Status CheckLogits(std::span<const float> logits) {
  float largest = -std::numeric_limits<float>::infinity();
  bool has_nan = false;
  for (float logit : logits) {
    has_nan |= std::isnan(logit);
    largest = std::max(largest, logit);
  }
  if (!has_nan && std::isfinite(largest)) return OkStatus();
  return InvalidArgument("the model computes NaN or infinite logits: its weights are damaged");
}

int32_t SampleToken(std::span<const float> logits, const SamplingParams& params, Rng* rng) {
  if (params.temperature == 0) return Argmax(logits);
  const std::vector<Candidate> candidates = FilterLogits(logits, params);
  double draw = rng->Uniform();
  for (const Candidate& candidate : candidates) {
    draw -= candidate.probability;
    if (draw < 0) return candidate.token;
  }
  return candidates.back().token;
}

}  // namespace octavo
