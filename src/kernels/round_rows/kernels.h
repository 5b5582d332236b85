// The kernels of RoundRows: what is done to each element of a group.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"
#include "kernels/round_rows/round_rows.h"

namespace octavo {

// The smallest and the largest value of a group, and 0.
struct GroupRange {
  float low;
  float high;
};

// NaN or Inf anywhere makes high NaN or Inf.
using RangeOfGroup = GroupRange(const float* x, int64_t count);

// out = (round(clamp(x / scale + zero_point)) - zero_point) * scale.
using RoundGroup = void(const float* x, int64_t count, RoundTo to, int bits, float scale,
                        float zero_point, float* out);

struct RoundKernel {
  Isa isa;
  const char* name;
  RangeOfGroup* range;
  RoundGroup* round;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, range, round, exactness) \
  RangeOfGroup range;                               \
  RoundGroup round;
#include "kernels/round_rows/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const RoundKernel> RoundKernels();

}  // namespace octavo
