#include "kernels/round_rows/round_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/quantize_rows/kernels.h"
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

namespace {

// Calls round(kernel, first element in a row, count, group in a row, scale) for each group of each
// row; the scale of values is NaN where there is none.
template <typename Round>
void ForEachGroup(const float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
                  float* scales, Isa isa, ThreadPool& pool, const Round& round) {
  const RoundKernel& kernel = BestRoundKernel(isa);
  const int64_t group = rounding.group == 0 ? k : rounding.group;
  const int64_t groups = rounding.groups(k);
  ForEachRow(pool, m, k, [&](int64_t i) {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t begin = g * group;
      const int64_t count = std::min(group, k - begin);
      const float* in = x + i * ldx + begin;
      const GroupRange range = kernel.range(in, count);
      GroupScale scale = ScaleOf(rounding, range);
      if (!std::isfinite(range.high) || !std::isfinite(scale.of_values))
        scale.stored = scale.of_values = std::numeric_limits<float>::quiet_NaN();
      scales[i * groups + g] = scale.stored;
      round(kernel, in, count, scale, i * k + begin);
    }
  });
}

}  // namespace

void RoundRows(const float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
               float* values, float* scales, Isa isa, ThreadPool& pool) {
  ForEachGroup(x, ldx, m, k, rounding, scales, isa, pool,
               [&](const RoundKernel& kernel, const float* in, int64_t count,
                   const GroupScale& scale, int64_t at) {
                 if (std::isnan(scale.of_values) || scale.of_values == 0) {
                   std::fill_n(values + at, count, scale.of_values);
                 } else {
                   kernel.round(in, count, rounding.to, rounding.bits, scale.of_values,
                                scale.zero_point, values + at);
                 }
               });
}

void RoundRowsInPlace(float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
                      Isa isa, ThreadPool& pool) {
  std::vector<float> values(static_cast<size_t>(m * k));
  std::vector<float> scales(static_cast<size_t>(m * rounding.groups(k)));
  RoundRows(x, ldx, m, k, rounding, values.data(), scales.data(), isa, pool);
  for (int64_t i = 0; i < m; ++i) std::copy_n(values.data() + i * k, k, x + i * ldx);
}

void RoundRowsToInt8(const float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
                     int8_t* codes, float* scales, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(rounding.to == RoundTo::kInt && rounding.zero_point == 0 &&
               rounding.scale_from != RowScale::kRange);
  RoundToInt8* to_int8 = BestKernel(QuantizeRowsKernels(), isa).round_to_int8;
  const auto top = static_cast<int8_t>((1 << (rounding.bits - 1)) - 1);
  const auto bottom = static_cast<int8_t>(-top - 1);
  ForEachGroup(
      x, ldx, m, k, rounding, scales, isa, pool,
      [&](const RoundKernel&, const float* in, int64_t count, const GroupScale& scale, int64_t at) {
        int8_t* out = codes + at;
        if (std::isnan(scale.of_values) || scale.of_values == 0) {
          std::fill_n(out, count, int8_t{0});
          return;
        }
        to_int8(in, count, {.factor = scale.of_values, .divide = true, .zero_point = 0}, out);
        // Of fewer bits: clamping what is rounded to whole numbers is the same as before.
        if (rounding.bits == 8) return;
        for (int64_t j = 0; j < count; ++j) out[j] = std::clamp(out[j], bottom, top);
      });
}

}  // namespace octavo
