#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quantize_rows/kernels.h"

namespace octavo {

float LargestMagnitudeRef(const float* x, int64_t k) {
  float largest = 0;
  for (int64_t j = 0; j < k; ++j) {
    const float magnitude = std::abs(x[j]);
    if (!(magnitude <= std::numeric_limits<float>::max())) return magnitude;
    largest = std::max(largest, magnitude);
  }
  return largest;
}

RowRange RangeWithZeroRef(const float* x, int64_t k) {
  RowRange range{0, 0};
  for (int64_t j = 0; j < k; ++j) {
    range.low = std::min(range.low, x[j]);
    range.high = std::max(range.high, x[j]);
  }
  return range;
}

void RoundToInt8Ref(const float* x, int64_t k, const Int8Rounding& rounding, int8_t* codes) {
  for (int64_t j = 0; j < k; ++j) {
    const float scaled = rounding.divide ? x[j] / rounding.factor : x[j] * rounding.factor;
    const float value = scaled + rounding.zero_point;
    codes[j] = static_cast<int8_t>(std::nearbyint(std::clamp(value, -128.0F, 127.0F)));
  }
}

}  // namespace octavo
