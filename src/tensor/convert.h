// Element conversions, scalar: the reference for every vector kernel.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "tensor/tensor.h"

namespace octavo {

inline float FloatFromBf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// Round to nearest, ties to even; NaN stays NaN (quiet).
inline uint16_t Bf16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

inline float RoundToBf16(float value) {
  return FloatFromBf16(Bf16FromFloat(value));
}

float FloatFromF16(uint16_t bits);
// Round to nearest, ties to even; beyond 65504 (rounded) infinity.
uint16_t F16FromFloat(float value);

// All elements of an F64, F32, F16 or BF16 view as float32 (F64 rounds). `out` has view.elements()
// elements; the view's bytes need no alignment. Unsupported for other dtypes.
Status ToFloat(const TensorView& view, std::span<float> out);
Result<Tensor> ToFloatTensor(const TensorView& view);

// `values` rounded to `dtype` (F32, BF16 or F16), as a tensor of that shape.
Result<Tensor> FromFloat(std::span<const float> values, DType dtype, Shape shape);

// `value` as it reads back after being stored in `dtype` (F32, BF16 or F16).
float RoundToDType(float value, DType dtype);

}  // namespace octavo
