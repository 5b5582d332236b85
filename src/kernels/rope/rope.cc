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

namespace {

// The loop vectorizes on the baseline, and is no hot spot.
void TurnNeighbours(float* x, int64_t half, const float* cos, const float* sin) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

}  // namespace

void ApplyRope(float* x, int64_t ldx, int64_t m, int64_t heads, int64_t head_dim,
               int64_t rotary_dim, RopePairs pairs, const float* cos, const float* sin, Isa isa,
               ThreadPool& pool) {
  OCTAVO_CHECK(rotary_dim % 2 == 0 && rotary_dim <= head_dim) << rotary_dim << " of " << head_dim;
  RopeHead* const turn =
      pairs == RopePairs::kHalves ? BestKernel(RopeKernels(), isa).run : TurnNeighbours;
  const int64_t half = rotary_dim / 2;
  ForEachRow(pool, m, heads * head_dim, [&](int64_t i) {
    for (int64_t head = 0; head < heads; ++head) {
      turn(x + i * ldx + head * head_dim, half, cos + i * half, sin + i * half);
    }
  });
}

}  // namespace octavo
