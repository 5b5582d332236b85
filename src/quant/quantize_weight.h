// Weight quantization arithmetic: ranges to scales, floats to codes, codes to floats
// (checkpoint-format 4; quantization 3).
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "quant/args.h"
#include "quant/scale_grid.h"
#include "tensor/small_floats.h"
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

// Round to nearest, ties to even, for |value| < 2^22: a float of that size plus 1.5 * 2^23 has no
// bits left for a fraction. Vectorizes where a call would not.
inline float RoundToNearestEven(float value) {
  constexpr float kMagic = 12582912.0F;
  return (value + kMagic) - kMagic;
}

// The numbers that codes stand for: integers, or the values of a small float.
struct CodeSet {
  enum class Kind : uint8_t { kInt, kE4M3, kE2M1 };
  Kind kind = Kind::kInt;
  float min = 0;
  float max = 0;

  // The nearest of them, ties to even; saturates.
  float Round(float value) const {
    value = value < min ? min : value;
    value = value > max ? max : value;
    switch (kind) {
      case Kind::kInt:
        return RoundToNearestEven(value);
      case Kind::kE4M3:
        return RoundToE4M3(value);
      case Kind::kE2M1:
        return RoundToE2M1(value);
    }
    return 0;
  }

  // The byte that QuantizedWeight::codes holds for one of them.
  uint8_t Encode(float number) const {
    switch (kind) {
      case Kind::kInt:
        return static_cast<uint8_t>(static_cast<int8_t>(static_cast<int>(number)));
      case Kind::kE4M3:
        return E4M3FromFloat(number);
      case Kind::kE2M1:
        return E2M1FromFloat(number);
    }
    return 0;
  }
};
// Integers of at most 8 bits, float8 and float4; Unsupported for others.
Result<CodeSet> CodesOf(const QuantizationArgs& args);
// The dtype of QuantizedWeight::codes.
DType CodeDType(const CodeSet& codes);

// Scale (and zero point) of each unit of `args` from minima and maxima of the weights, computed in
// float32 and rounded to `scale_dtype` (BF16, F16 or F32) before use; an exact zero becomes the
// dtype's epsilon (2^-7, 2^-10, 2^-23). MX schemes: powers of two. NVFP4 (strategy tensor_group):
// E4M3 of the product with `global_scale`, a zero 1/8; without one (0) the bare amax / 6, which a
// search compares. minima and maxima: one a unit.
struct ScaleAndZeroPoint {
  Tensor scale;
  Tensor zero_point;
  Tensor global_scale;  // F32 [1], of NVFP4
};
Result<ScaleAndZeroPoint> ComputeScales(const QuantizationArgs& args, std::span<const float> minima,
                                        std::span<const float> maxima, const Shape& scale_shape,
                                        DType scale_dtype, Arithmetic arithmetic,
                                        float global_scale = 0);

// Whether groups have E4M3 scales under one float32 divisor for the whole tensor (NVFP4).
bool HasGlobalScale(const QuantizationArgs& args);
// That divisor: 448 * 6 times 1 / amax, each rounded to `dtype` (the weight's) as PyTorch divides a
// number by a tensor; 1 where that is not finite.
float GlobalScale(float amax, DType dtype);
float LargestMagnitude(std::span<const float> values);

// What is known of a layer beside its weight.
struct LayerFacts {
  // The largest magnitude in the weights of all layers that run as one (q/k/v, gate/up), which
  // share a global scale (NVFP4); 0: the layer is alone.
  float shared_amax = 0;
  // The mean square of each input, [k], for observers that weigh errors by it; empty: all alike.
  std::span<const float> input_importance;
};

// The scales that QuantizeToNearest uses: the range of each unit by args.observer, then
// ComputeScales. GPTQ starts from the same ones. InvalidArgument when w holds NaN or Inf.
Result<ScaleAndZeroPoint> ObserveScales(const QuantizationArgs& args, const ScaleGrid& grid,
                                        std::span<const float> w, DType scale_dtype,
                                        Arithmetic arithmetic = Arithmetic::kFloat32,
                                        const LayerFacts& facts = {});

// Whether no value is NaN or Inf.
bool AllFinite(std::span<const float> values);

// Codes of w [n, k] against given scales; args are of a kind that CodesOf knows.
Tensor QuantizeWithScales(const QuantizationArgs& args, const ScaleGrid& grid,
                          std::span<const float> w, const ScaleAndZeroPoint& scales,
                          DType scale_dtype, Arithmetic arithmetic = Arithmetic::kFloat32);

// Round to nearest: w [n, k] float32 -> codes against scales from its own range (the observer's).
// `scale_dtype` is the dtype the scale is stored in (the model's). InvalidArgument when w holds NaN
// or Inf (the caller names the layer). Unsupported for what CodesOf does not know.
// One thread; rows are independent (but for strategy tensor and block).
Result<QuantizedWeight> QuantizeToNearest(const QuantizationArgs& args, std::span<const float> w,
                                          int64_t n, int64_t k, DType scale_dtype,
                                          Arithmetic arithmetic = Arithmetic::kFloat32,
                                          const LayerFacts& facts = {});

// (value of the code - zero_point) * (scale / global_scale), float32 [n, k].
Tensor Dequantize(const QuantizationArgs& args, const QuantizedWeight& weight);

}  // namespace octavo
