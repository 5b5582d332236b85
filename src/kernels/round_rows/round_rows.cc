#include "kernels/round_rows/round_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/round_rows/kernels.h"
#include "kernels/split.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

struct GroupScale {
  float stored;      // as the caller is told
  float of_values;   // what values are divided by
  float zero_point;  // in codes
};

float Top(const RowRounding& rounding) {
  switch (rounding.to) {
    case RoundTo::kInt:
      return static_cast<float>((1 << (rounding.bits - 1)) - 1);
    case RoundTo::kE4M3:
      return kMaxE4M3;
    case RoundTo::kE2M1:
      return kMaxE2M1;
  }
  return 0;
}

GroupScale ScaleOf(const RowRounding& rounding, const GroupRange& range) {
  const float largest = std::max(-range.low, range.high);
  const auto span = static_cast<float>((1 << rounding.bits) - 1);
  switch (rounding.scale_from) {
    case RowScale::kFixed:
      return {rounding.scale, rounding.scale, static_cast<float>(rounding.zero_point)};
    case RowScale::kLargest:
      return {largest / Top(rounding), largest / Top(rounding), 0};
    case RowScale::kHalfSpan:
      return {largest / (span / 2), largest / (span / 2), 0};
    case RowScale::kRange: {
      const float scale = (range.high - range.low) / span;
      if (scale == 0) return {scale, scale, 0};
      const auto bottom = static_cast<float>(-(1 << (rounding.bits - 1)));
      const float zero_point = std::clamp(bottom - range.low / scale, bottom, bottom + span);
      return {scale, scale, std::nearbyint(zero_point)};
    }
    case RowScale::kPowerOfTwo: {
      const float scale = MxScale(largest, rounding.to == RoundTo::kE2M1 ? 2 : 8);
      return {scale, scale, 0};
    }
    case RowScale::kE4M3OfGlobal: {
      const float code = FloatFromE4M3(E4M3FromFloat(rounding.global * (largest / kMaxE2M1)));
      const float scale = code == 0 ? 0.125F : code;
      return {scale, scale / rounding.global, 0};
    }
  }
  return {};
}

const RoundKernel& BestRoundKernel(Isa isa) {
  return BestKernel(RoundKernels(), isa);
}

}  // namespace

std::span<const RoundKernel> RoundKernels() {
  static constexpr RoundKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, range, round, exactness) \
  {Isa::isa, #round, range, round, Exactness::exactness},
#include "kernels/round_rows/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void RoundRows(const float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
               float* values, float* scales, Isa isa, ThreadPool& pool) {
  const RoundKernel& kernel = BestRoundKernel(isa);
  const int64_t group = rounding.group == 0 ? k : rounding.group;
  const int64_t groups = rounding.groups(k);
  ForEachRow(pool, m, k, [&](int64_t i) {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t begin = g * group;
      const int64_t count = std::min(group, k - begin);
      const float* in = x + i * ldx + begin;
      float* out = values + i * k + begin;
      const GroupRange range = kernel.range(in, count);
      const GroupScale scale = ScaleOf(rounding, range);
      float& stored = scales[i * groups + g];
      if (!std::isfinite(range.high) || !std::isfinite(scale.of_values)) {
        stored = std::numeric_limits<float>::quiet_NaN();
        std::fill_n(out, count, stored);
      } else if (scale.of_values == 0) {
        stored = scale.stored;
        std::fill_n(out, count, 0.0F);
      } else {
        stored = scale.stored;
        kernel.round(in, count, rounding.to, rounding.bits, scale.of_values, scale.zero_point, out);
      }
    }
  });
}

}  // namespace octavo
