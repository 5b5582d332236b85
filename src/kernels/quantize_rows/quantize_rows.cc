#include "kernels/quantize_rows/quantize_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quantize_rows/kernels.h"
#include "kernels/split.h"

namespace octavo {

namespace {

constexpr float kLibraryZeroGuard = 0x1p-23F;  // torch.finfo(float32).eps
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLowestCode = -128;
constexpr float kHighestCode = 127;

}  // namespace

std::span<const QuantizeRowsKernel> QuantizeRowsKernels() {
  static constexpr QuantizeRowsKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, magnitude, range, round, exactness) \
  {Isa::isa, #round, magnitude, range, round, Exactness::exactness},
#include "kernels/quantize_rows/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void QuantizeRowsInt8(const float* x, int64_t ldx, int64_t m, int64_t k, ActivationRule rule,
                      int8_t* codes, float* scales, Isa isa, ThreadPool& pool) {
  const QuantizeRowsKernel& kernel = BestKernel(QuantizeRowsKernels(), isa);
  const bool engine = rule == ActivationRule::kEngine;
  ForEachRow(pool, m, k, [&](int64_t i) {
    const float* row = x + i * ldx;
    int8_t* row_codes = codes + i * k;
    const float largest = kernel.largest_magnitude(row, k);
    const bool finite = std::isfinite(largest);
    if (!finite || largest == 0 || !std::isfinite(127.0F / largest)) {
      std::fill_n(row_codes, k, int8_t{0});
      const float zero_scale = engine ? 0.0F : kLibraryZeroGuard;
      scales[i] = finite ? zero_scale : kNan;
      return;
    }
    scales[i] = engine ? largest / 127.0F : largest / 127.5F;
    const float factor = engine ? 127.0F / largest : scales[i];
    kernel.round_to_int8(row, k, {.factor = factor, .divide = !engine, .zero_point = 0}, row_codes);
  });
}

void QuantizeRowsInt8Asymmetric(const float* x, int64_t ldx, int64_t m, int64_t k, int8_t* codes,
                                float* scales, int32_t* zero_points, Isa isa, ThreadPool& pool) {
  const QuantizeRowsKernel& kernel = BestKernel(QuantizeRowsKernels(), isa);
  ForEachRow(pool, m, k, [&](int64_t i) {
    const float* row = x + i * ldx;
    zero_points[i] = 0;
    scales[i] = kNan;
    if (std::isfinite(kernel.largest_magnitude(row, k))) {
      const RowRange range = kernel.range_with_zero(row, k);
      const float scale = (range.high - range.low) / (kHighestCode - kLowestCode);
      if (scale > 0 && std::isfinite(scale)) {
        const float zero_point =
            std::nearbyint(std::clamp(kLowestCode - range.low / scale, kLowestCode, kHighestCode));
        scales[i] = scale;
        zero_points[i] = static_cast<int32_t>(zero_point);
        kernel.round_to_int8(row, k, {.factor = scale, .divide = true, .zero_point = zero_point},
                             codes + i * k);
        return;
      }
      if (scale == 0) scales[i] = kLibraryZeroGuard;
    }
    std::fill_n(codes + i * k, k, int8_t{0});
  });
}

void QuantizeRowsInt8Static(const float* x, int64_t ldx, int64_t m, int64_t k,
                            const StaticInt8& quantization, int8_t* codes, float* scales, Isa isa,
                            ThreadPool& pool) {
  OCTAVO_CHECK(quantization.scale > 0 && std::isfinite(quantization.scale)) << quantization.scale;
  OCTAVO_CHECK(quantization.zero_point >= -128 && quantization.zero_point <= 127)
      << quantization.zero_point;
  const QuantizeRowsKernel& kernel = BestKernel(QuantizeRowsKernels(), isa);
  const Int8Rounding rounding{.factor = quantization.scale,
                              .divide = true,
                              .zero_point = static_cast<float>(quantization.zero_point)};
  ForEachRow(pool, m, k, [&](int64_t i) {
    const float* row = x + i * ldx;
    if (std::isfinite(kernel.largest_magnitude(row, k))) {
      scales[i] = quantization.scale;
      kernel.round_to_int8(row, k, rounding, codes + i * k);
    } else {
      scales[i] = kNan;
      std::fill_n(codes + i * k, k, int8_t{0});
    }
  });
}

}  // namespace octavo
