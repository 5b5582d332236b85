// The kernels of dynamic activation quantization: two passes over one row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// max |x[j]| over j < k; when an x[j] is NaN or infinite the result is one of them.
using LargestMagnitude = float(const float* x, int64_t k);

// codes[j] = rne(clamp(x[j] * factor, -128, 127)), or with x[j] / factor when `divide` is set; rne
// is round to nearest, ties to even. Both operations as IEEE rounds them. x is finite.
using RoundToInt8 = void(const float* x, int64_t k, float factor, bool divide, int8_t* codes);

struct QuantizeRowsKernel {
  Isa isa;
  const char* name;
  LargestMagnitude* largest_magnitude;
  RoundToInt8* round_to_int8;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, magnitude, round, exactness) \
  LargestMagnitude magnitude;                           \
  RoundToInt8 round;
#include "kernels/quantize_rows/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const QuantizeRowsKernel> QuantizeRowsKernels();

}  // namespace octavo
