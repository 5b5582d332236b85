#include "kernels/rms_norm/rms_norm.h"

#include "kernels/rms_norm/kernels.h"
#include "kernels/split.h"

namespace octavo {

std::span<const RmsNormKernel> RmsNormKernels() {
  static constexpr RmsNormKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, exactness) \
  {Isa::isa, #function, function, Exactness::exactness},
#include "kernels/rms_norm/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void RmsNorm(const float* x, int64_t ldx, int64_t m, std::span<const float> weight, float epsilon,
             float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  const RmsNormKernel& kernel = BestKernel(RmsNormKernels(), isa);
  const auto k = static_cast<int64_t>(weight.size());
  ForEachRow(pool, m, k,
             [&](int64_t i) { kernel.run(x + i * ldx, k, weight.data(), epsilon, y + i * ldy); });
}

}  // namespace octavo
