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

void RoundToInt8Ref(const float* x, int64_t k, float factor, bool divide, int8_t* codes) {
  for (int64_t j = 0; j < k; ++j) {
    const float value = divide ? x[j] / factor : x[j] * factor;
    codes[j] = static_cast<int8_t>(std::nearbyint(std::clamp(value, -128.0F, 127.0F)));
  }
}

}  // namespace octavo
