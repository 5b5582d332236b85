#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace octavo {

namespace {

// 1 / theta^(2i / d).
std::vector<float> Plain(double theta, int64_t rotary_dim) {
  std::vector<float> frequencies(static_cast<size_t>(rotary_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    frequencies[i] = 1.0F / std::pow(static_cast<float>(theta), exponent);
  }
  return frequencies;
}

// Positions divided by the factor.
void ScaleLinear(const RopeSpec& rope, std::vector<float>* frequencies) {
  for (float& frequency : *frequencies) frequency /= static_cast<float>(rope.factor);
}

// NTK-aware: the base grows with the length beyond what was trained on.
double DynamicTheta(const RopeSpec& rope, int64_t rotary_dim, int64_t length) {
  const auto trained = static_cast<double>(rope.trained_positions);
  const double ratio = std::max(static_cast<double>(length), trained) / trained;
  const auto dim = static_cast<double>(rotary_dim);
  return rope.theta * std::pow(rope.factor * ratio - (rope.factor - 1), dim / (dim - 2));
}

// Llama 3.1: by the number of turns within the trained positions, few are divided by the factor,
// many are kept, between them both are blended.
void ScaleLlama3(const RopeSpec& rope, std::vector<float>* frequencies) {
  const auto factor = static_cast<float>(rope.factor);
  const auto low = static_cast<float>(rope.low_frequency_factor);
  const auto high = static_cast<float>(rope.high_frequency_factor);
  for (float& frequency : *frequencies) {
    const float turns =
        static_cast<float>(rope.trained_positions) * frequency / (2 * std::numbers::pi_v<float>);
    if (turns > high) continue;
    if (turns < low) {
      frequency /= factor;
    } else {
      const float kept = (turns - low) / (high - low);
      frequency = (1 - kept) * frequency / factor + kept * frequency;
    }
  }
}

// The dimension, as a fraction, whose frequency turns `turns` times within the trained positions.
double DimensionOfTurns(const RopeSpec& rope, int64_t rotary_dim, double turns) {
  const auto trained = static_cast<double>(rope.trained_positions);
  return static_cast<double>(rotary_dim) * std::log(trained / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

// YaRN (Peng et al. 2023), "NTK by parts": dimensions before the ramp are kept, those behind it
// divided by the factor.
void ScaleYarn(const RopeSpec& rope, int64_t rotary_dim, std::vector<float>* frequencies) {
  double begin = DimensionOfTurns(rope, rotary_dim, rope.beta_fast);
  double end = DimensionOfTurns(rope, rotary_dim, rope.beta_slow);
  if (rope.round_ramp) {
    begin = std::floor(begin);
    end = std::ceil(end);
  }
  begin = std::max(begin, 0.0);
  end = std::min(end, static_cast<double>(rotary_dim - 1));
  if (begin == end) end += 0.001;
  for (size_t i = 0; i < frequencies->size(); ++i) {
    const auto divided =
        static_cast<float>(std::clamp((static_cast<double>(i) - begin) / (end - begin), 0.0, 1.0));
    float& frequency = (*frequencies)[i];
    frequency = frequency / static_cast<float>(rope.factor) * divided + frequency * (1 - divided);
  }
}

// LongRoPE (Ding et al. 2024).
void ScaleLongRope(const RopeSpec& rope, int64_t length, std::vector<float>* frequencies) {
  const auto& factors = length > rope.trained_positions ? rope.long_factors : rope.short_factors;
  for (size_t i = 0; i < frequencies->size(); ++i) (*frequencies)[i] /= factors[i];
}

}  // namespace

std::vector<float> RopeFrequencies(const RopeSpec& rope, int64_t rotary_dim, int64_t length) {
  if (rope.scaling == RopeScaling::kDynamic)
    return Plain(DynamicTheta(rope, rotary_dim, length), rotary_dim);
  std::vector<float> frequencies = Plain(rope.theta, rotary_dim);
  if (rope.scaling == RopeScaling::kLinear) ScaleLinear(rope, &frequencies);
  if (rope.scaling == RopeScaling::kLlama3) ScaleLlama3(rope, &frequencies);
  if (rope.scaling == RopeScaling::kYarn) ScaleYarn(rope, rotary_dim, &frequencies);
  if (rope.scaling == RopeScaling::kLongRope) ScaleLongRope(rope, length, &frequencies);
  return frequencies;
}

}  // namespace octavo
