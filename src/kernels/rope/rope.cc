#include "kernels/rope/rope.h"

#include "kernels/rope/kernels.h"
#include "kernels/split.h"

namespace octavo {

std::span<const RopeKernel> RopeKernels() {
  static constexpr RopeKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, exactness) \
  {Isa::isa, #function, function, Exactness::exactness},
#include "kernels/rope/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

void ApplyRope(float* x, int64_t ldx, int64_t m, int64_t heads, int64_t head_dim,
               int64_t rotary_dim, const float* cos, const float* sin, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(rotary_dim % 2 == 0 && rotary_dim <= head_dim) << rotary_dim << " of " << head_dim;
  const RopeKernel& kernel = BestKernel(RopeKernels(), isa);
  const int64_t half = rotary_dim / 2;
  ForEachRow(pool, m, heads * head_dim, [&](int64_t i) {
    for (int64_t head = 0; head < heads; ++head) {
      kernel.run(x + i * ldx + head * head_dim, half, cos + i * half, sin + i * half);
    }
  });
}

}  // namespace octavo
