#include "compress/modifiers/smooth_scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace octavo {

namespace {

constexpr float kSmallestScale = 1e-5F;

// max |W_:,j| over all rows of all weights.
std::vector<float> ColumnMaxima(std::span<const std::span<const float>> weights, size_t k) {
  std::vector<float> maxima(k, 0.0F);
  for (const std::span<const float> weight : weights) {
    OCTAVO_CHECK(weight.size() % k == 0) << weight.size() << " elements for k = " << k;
    for (size_t row = 0; row < weight.size(); row += k) {
      for (size_t j = 0; j < k; ++j) {
        const float magnitude = std::fabs(weight[row + j]);
        // NaN stays, and is refused with the scale.
        const bool is_nan = magnitude != magnitude;
        maxima[j] = magnitude > maxima[j] || is_nan ? magnitude : maxima[j];
      }
    }
  }
  return maxima;
}

float SmoothScale(float range, float weight, float strength, SmoothAlgorithm algorithm) {
  if (range == 0) return 1;
  if (algorithm == SmoothAlgorithm::kLogEqualization)
    return std::max(range / std::log2(2 + range), kSmallestScale);
  if (weight == 0) return std::max(range, kSmallestScale);
  return std::max(std::pow(range, strength) / std::pow(weight, 1 - strength), kSmallestScale);
}

}  // namespace

Result<std::vector<float>> SmoothScales(std::span<const float> minimum,
                                        std::span<const float> maximum,
                                        std::span<const std::span<const float>> weights,
                                        double strength, SmoothAlgorithm algorithm) {
  const size_t k = minimum.size();
  OCTAVO_CHECK(maximum.size() == k);
  if (k == 0) return InvalidArgument("no calibration token reached the norm");
  const std::vector<float> column_maxima = ColumnMaxima(weights, k);
  std::vector<float> scales(k);
  for (size_t j = 0; j < k; ++j) {
    const float range = maximum[j] - minimum[j];
    const float weight = 2 * column_maxima[j];
    scales[j] = SmoothScale(range, weight, static_cast<float>(strength), algorithm);
    if (!std::isfinite(range) || !std::isfinite(weight) || !std::isfinite(scales[j]))
      return InvalidArgument(fmt::format(
          "channel {}: activations from {} to {} and a largest weight of {} give no finite scale",
          j, minimum[j], maximum[j], column_maxima[j]));
  }
  return scales;
}

}  // namespace octavo
