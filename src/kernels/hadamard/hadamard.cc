#include "kernels/hadamard/hadamard.h"

#include <bit>

#include "kernels/hadamard/kernels.h"
#include "kernels/split.h"

namespace octavo {

std::span<const HadamardKernel> HadamardKernels() {
  static constexpr HadamardKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, exactness) \
  {Isa::isa, #function, function, Exactness::exactness},
#include "kernels/hadamard/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void ApplyHadamard(const HadamardBlock& block, const float* x, int64_t ldx, int64_t m, int64_t k,
                   float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  const int64_t n = block.n;
  OCTAVO_CHECK(n > 0 && std::has_single_bit(static_cast<uint64_t>(n)) && k % n == 0)
      << k << " columns in blocks of " << n;
  const HadamardKernel& kernel = BestKernel(HadamardKernels(), isa);
  ForEachRow(pool, m, k, [&](int64_t row) {
    for (int64_t begin = 0; begin < k; begin += n) {
      const float* from = x + row * ldx + begin;
      float* to = y + row * ldy + begin;
      for (int64_t i = 0; i < n; ++i)
        to[i] = block.before == nullptr ? from[i] : from[i] * block.before[i];
      kernel.run(to, n);
      for (int64_t i = 0; i < n; ++i)
        to[i] *= block.after == nullptr ? block.scale : block.scale * block.after[i];
    }
  });
}

}  // namespace octavo
