#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/round_rows/kernels.h"
#include "tensor/small_floats.h"

namespace octavo {

GroupRange RangeOfGroupRef(const float* x, int64_t count) {
  GroupRange range{0, 0};
  for (int64_t j = 0; j < count; ++j) {
    if (!std::isfinite(x[j])) return {0, std::numeric_limits<float>::quiet_NaN()};
    range.low = std::min(range.low, x[j]);
    range.high = std::max(range.high, x[j]);
  }
  return range;
}

void RoundGroupRef(const float* x, int64_t count, RoundTo to, int bits, float scale,
                   float zero_point, float* out) {
  const float half = static_cast<float>(1 << (bits - 1));
  for (int64_t j = 0; j < count; ++j) {
    const float value = x[j] / scale;
    switch (to) {
      case RoundTo::kInt:
        out[j] =
            (std::nearbyint(std::clamp(value + zero_point, -half, half - 1)) - zero_point) * scale;
        break;
      case RoundTo::kE4M3:
        out[j] = FloatFromE4M3(E4M3FromFloat(value)) * scale;
        break;
      case RoundTo::kE2M1:
        out[j] = kE2M1Values[E2M1FromFloat(value)] * scale;
        break;
    }
  }
}

}  // namespace octavo
