// Weight quantization arithmetic: ranges to scales, floats to codes, codes to floats
// (checkpoint-format 4; quantization 3).
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "quant/args.h"
#include "quant/scale_grid.h"
#include "tensor/tensor.h"

namespace octavo {

// Codes and scales of one weight [n, k]. `scale` holds float32 values that the stored dtype
// represents exactly.
struct QuantizedWeight {
  Tensor codes;  // [n, k]; integers: I8, float8: F8_E4M3, float4: U8, a code of 4 bits each
  Tensor scale;  // F32; channel: [n, 1], tensor: [1], group: [n, k / g], block: [rows, columns]
  Tensor zero_point;    // I8, shape of scale; empty when symmetric
  Tensor global_scale;  // F32 [1], by which scales are divided; empty where there is none (NVFP4's)
  Tensor group_of_column;  // I32 [k]; empty: column / group size

  QuantizedWeight Clone() const;
};

// How the arithmetic rounds between steps.
enum class Arithmetic : uint8_t {
  kFloat32,    // ours: scale rounded to its stored dtype, then everything in float32 against it
  kReference,  // the library's: scale, quotient and sum each rounded to the weights' dtype before
               // the next step
};

// The codes of a signed integer of `args.num_bits` bits.
struct CodeRange {
  int min;
  int max;
};
inline CodeRange IntegerRange(const QuantizationArgs& args) {
  const int half = 1 << (args.num_bits - 1);
  return {-half, half - 1};
}

// Scale (and zero point) of each unit of `args` from minima and maxima of the weights, computed in
// float32 and rounded to `scale_dtype` (BF16, F16 or F32) before use; an exact zero becomes the
// dtype's epsilon (2^-7, 2^-10, 2^-23). minima and maxima: one a unit.
struct ScaleAndZeroPoint {
  Tensor scale;
  Tensor zero_point;
};
Result<ScaleAndZeroPoint> ComputeScales(const QuantizationArgs& args, std::span<const float> minima,
                                        std::span<const float> maxima, const Shape& scale_shape,
                                        DType scale_dtype, Arithmetic arithmetic);

// The scales that QuantizeToNearest uses: the range of each unit by args.observer, then
// ComputeScales. GPTQ starts from the same ones. InvalidArgument when w holds NaN or Inf.
Result<ScaleAndZeroPoint> ObserveScales(const QuantizationArgs& args, const ScaleGrid& grid,
                                        std::span<const float> w, DType scale_dtype,
                                        Arithmetic arithmetic = Arithmetic::kFloat32);

// Whether no value is NaN or Inf.
bool AllFinite(std::span<const float> values);

// Codes of w [n, k] against given scales.
Tensor QuantizeWithScales(const QuantizationArgs& args, const ScaleGrid& grid,
                          std::span<const float> w, const ScaleAndZeroPoint& scales,
                          DType scale_dtype, Arithmetic arithmetic = Arithmetic::kFloat32);

// Round to nearest: w [n, k] float32 -> codes against scales from its own range (the observer's).
// `scale_dtype` is the dtype the scale is stored in (the model's). InvalidArgument when w holds NaN
// or Inf (the caller names the layer). Unsupported for what is no integer of at most 8 bits.
// One thread; rows are independent (but for strategy tensor and block).
Result<QuantizedWeight> QuantizeToNearest(const QuantizationArgs& args, std::span<const float> w,
                                          int64_t n, int64_t k, DType scale_dtype,
                                          Arithmetic arithmetic = Arithmetic::kFloat32);

// Round to nearest, ties to even, for |value| < 2^22: a float of that size plus 1.5 * 2^23 has no
// bits left for a fraction. Vectorizes where a call would not.
inline float RoundToNearestEven(float value) {
  constexpr float kMagic = 12582912.0F;
  return (value + kMagic) - kMagic;
}

// One code: rne(clamp(w / scale + zero_point, q_min, q_max)).
inline int8_t QuantizeInt(float w, float scale, int zero_point, int q_min, int q_max) {
  const float low = static_cast<float>(q_min);
  const float high = static_cast<float>(q_max);
  float value = w / scale + static_cast<float>(zero_point);
  value = value < low ? low : value;
  value = value > high ? high : value;
  return static_cast<int8_t>(static_cast<int>(RoundToNearestEven(value)));
}

// (value of the code - zero_point) * (scale / global_scale), float32 [n, k].
Tensor Dequantize(const QuantizationArgs& args, const QuantizedWeight& weight);

}  // namespace octavo
