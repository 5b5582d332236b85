#include "kernels/silu_mul/silu_mul.h"

#include "kernels/silu_mul/kernels.h"
#include "kernels/split.h"

namespace octavo {

std::span<const SiluMulKernel> SiluMulKernels() {
  static constexpr SiluMulKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, exactness) \
  {Isa::isa, #function, function, Exactness::exactness},
#include "kernels/silu_mul/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void SiluMul(const float* gate_up, int64_t ld, int64_t m, int64_t n, float* y, int64_t ldy, Isa isa,
             ThreadPool& pool) {
  const SiluMulKernel& kernel = BestKernel(SiluMulKernels(), isa);
  ForEachRow(pool, m, n, [&](int64_t i) {
    kernel.run(gate_up + i * ld, gate_up + i * ld + n, n, y + i * ldy);
  });
}

}  // namespace octavo
