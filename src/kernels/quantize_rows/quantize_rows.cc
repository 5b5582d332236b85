#include "kernels/quantize_rows/quantize_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quantize_rows/kernels.h"
#include "kernels/split.h"

namespace octavo {

namespace {

constexpr float kLibraryZeroGuard = 0x1p-23F;  // torch.finfo(float32).eps

}  // namespace

std::span<const QuantizeRowsKernel> QuantizeRowsKernels() {
  static constexpr QuantizeRowsKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, magnitude, round, exactness) \
  {Isa::isa, #round, magnitude, round, Exactness::exactness},
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
      scales[i] = finite ? zero_scale : std::numeric_limits<float>::quiet_NaN();
      return;
    }
    scales[i] = engine ? largest / 127.0F : largest / 127.5F;
    kernel.round_to_int8(row, k, engine ? 127.0F / largest : scales[i], !engine, row_codes);
  });
}

}  // namespace octavo
