// The kernels of activation quantization: passes over one row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// max |x[j]| over j < k; when an x[j] is NaN or infinite the result is one of them.
using LargestMagnitude = float(const float* x, int64_t k);

// low = min(0, min_j x[j]), high = max(0, max_j x[j]) over j < k; x is finite.
struct RowRange {
  float low;
  float high;
};
using RangeWithZero = RowRange(const float* x, int64_t k);

// codes[j] = rne(clamp(x[j] * factor + zero_point, -128, 127)), or with x[j] / factor when `divide`
// is set; rne is round to nearest, ties to even. Each operation as IEEE rounds it, none fused. x is
// finite.
struct Int8Rounding {
  float factor;
  bool divide;
  float zero_point;
};
using RoundToInt8 = void(const float* x, int64_t k, const Int8Rounding& rounding, int8_t* codes);

struct QuantizeRowsKernel {
  Isa isa;
  const char* name;
  LargestMagnitude* largest_magnitude;
  RangeWithZero* range_with_zero;
  RoundToInt8* round_to_int8;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, magnitude, range, round, exactness) \
  LargestMagnitude magnitude;                                  \
  RangeWithZero range;                                         \
  RoundToInt8 round;
#include "kernels/quantize_rows/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const QuantizeRowsKernel> QuantizeRowsKernels();

}  // namespace octavo
