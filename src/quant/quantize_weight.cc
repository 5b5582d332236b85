#include "quant/quantize_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "quant/observers/observer.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

// What replaces a scale of exactly zero (checkpoint-format 4.3): the dtype's epsilon.
float ScaleEpsilon(DType dtype) {
  return dtype == DType::kBF16 ? 0x1p-7F : dtype == DType::kF16 ? 0x1p-10F : 0x1p-23F;
}

Status CheckIntegerWeight(const QuantizationArgs& args) {
  if (args.type == QuantizationType::kInt && args.num_bits <= 8) return OkStatus();
  return Unsupported(fmt::format(
      "weights of [{}] cannot be quantized yet, only integers of at most 8 bits", args.ToString()));
}

struct ScaleStep {
  float scale;  // before the guard against zero
  float zero_point;
};

ScaleStep Symmetric(float low, float high, float code_span) {
  return {std::max(-low, high) / (code_span / 2), 0.0F};
}

// Ours: the zero point is found against the scale as stored.
ScaleStep AsymmetricFloat32(float low, float high, float code_span, const CodeRange& codes,
                            DType dtype) {
  const float scale = RoundToDType((high - low) / code_span, dtype);
  const float zero_point = scale == 0 ? 0.0F : static_cast<float>(codes.min) - low / scale;
  return {scale, zero_point};
}

ScaleStep AsymmetricReference(float low, float high, float code_span, const CodeRange& codes,
                              DType dtype) {
  const auto round = [dtype](float value) { return RoundToDType(value, dtype); };
  const float scale = round(round(high - low) / code_span);
  // 0 / 0 has no value in the library either; low / 0 is infinite and lands on the last code.
  if (scale == 0 && low == 0) return {scale, 0.0F};
  return {scale, round(static_cast<float>(codes.min) - round(low / scale))};
}

// Codes of `count` elements that share a scale. `round` rounds to the weights' dtype.
template <typename Round>
void QuantizeRun(const float* w, int64_t count, float scale, float zero_point,
                 const CodeRange& codes, Round round, int8_t* out) {
  const float low = static_cast<float>(codes.min);
  const float high = static_cast<float>(codes.max);
  for (int64_t i = 0; i < count; ++i) {
    float value = round(round(w[i] / scale) + zero_point);
    value = value < low ? low : value;
    value = value > high ? high : value;
    out[i] = static_cast<int8_t>(static_cast<int>(RoundToNearestEven(value)));
  }
}

template <typename Round>
void QuantizeAll(const QuantizationArgs& args, const ScaleGrid& grid, std::span<const float> w,
                 const ScaleAndZeroPoint& scales, Round round, std::span<int8_t> out) {
  const CodeRange codes = IntegerRange(args);
  const std::span<const float> scale = scales.scale.data<float>();
  std::span<const int8_t> zero_point;
  if (!scales.zero_point.empty()) zero_point = scales.zero_point.data<int8_t>();
  for (int64_t row = 0; row < grid.n; ++row) {
    for (int64_t begin = 0; begin < grid.k; begin += grid.unit_columns) {
      const int64_t count = std::min(grid.unit_columns, grid.k - begin);
      const auto unit = static_cast<size_t>(grid.Unit(row, begin));
      const float zero = zero_point.empty() ? 0.0F : static_cast<float>(zero_point[unit]);
      const auto first = static_cast<size_t>(row * grid.k + begin);
      QuantizeRun(&w[first], count, scale[unit], zero, codes, round, &out[first]);
    }
  }
}

// What each byte of a weight's codes stands for.
using CodeValues = std::array<float, 256>;

CodeValues ValuesOfCodes(const QuantizationArgs& args) {
  CodeValues values;
  for (size_t code = 0; code < values.size(); ++code) {
    const auto byte = static_cast<uint8_t>(code);
    values[code] = args.type == QuantizationType::kInt
                       ? static_cast<float>(static_cast<int8_t>(byte))
                   : args.num_bits == 8 ? FloatFromE4M3(byte)
                                        : kE2M1Values[byte & 15U];
  }
  return values;
}

}  // namespace

QuantizedWeight QuantizedWeight::Clone() const {
  const auto copy = [](const Tensor& tensor) { return tensor.empty() ? Tensor() : tensor.Clone(); };
  return {.codes = copy(codes),
          .scale = copy(scale),
          .zero_point = copy(zero_point),
          .global_scale = copy(global_scale),
          .group_of_column = copy(group_of_column)};
}

bool AllFinite(std::span<const float> values) {
  uint32_t found = 0;
  for (float value : values) {
    const uint32_t exponent = std::bit_cast<uint32_t>(value) & 0x7F800000U;
    found |= static_cast<uint32_t>(exponent == 0x7F800000U);
  }
  return found == 0;
}

Result<ScaleAndZeroPoint> ComputeScales(const QuantizationArgs& args, std::span<const float> minima,
                                        std::span<const float> maxima, const Shape& scale_shape,
                                        DType scale_dtype, Arithmetic arithmetic) {
  OCTAVO_CHECK(static_cast<int64_t>(minima.size()) == Elements(scale_shape) &&
               maxima.size() == minima.size())
      << minima.size() << " ranges for scales of shape " << ShapeString(scale_shape);
  OCTAVO_RETURN_IF_ERROR(CheckIntegerWeight(args));
  const CodeRange codes = IntegerRange(args);
  const auto code_span = static_cast<float>(codes.max - codes.min);

  ScaleAndZeroPoint result;
  result.scale = Tensor(DType::kF32, scale_shape);
  if (!args.symmetric) result.zero_point = Tensor(DType::kI8, scale_shape);
  for (size_t unit = 0; unit < minima.size(); ++unit) {
    const float low = std::min(minima[unit], 0.0F);
    const float high = std::max(maxima[unit], 0.0F);
    const ScaleStep step = args.symmetric ? Symmetric(low, high, code_span)
                           : arithmetic == Arithmetic::kReference
                               ? AsymmetricReference(low, high, code_span, codes, scale_dtype)
                               : AsymmetricFloat32(low, high, code_span, codes, scale_dtype);
    const float scale = RoundToDType(step.scale, scale_dtype);
    if (!std::isfinite(scale))
      return InvalidArgument(fmt::format("values from {} to {} need a scale that {} cannot hold",
                                         low, high, DTypeName(scale_dtype)));
    result.scale.mutable_data<float>()[unit] = scale == 0 ? ScaleEpsilon(scale_dtype) : scale;
    if (!args.symmetric) {
      const float zero_point =
          std::clamp(step.zero_point, static_cast<float>(codes.min), static_cast<float>(codes.max));
      result.zero_point.mutable_data<int8_t>()[unit] =
          static_cast<int8_t>(static_cast<int>(RoundToNearestEven(zero_point)));
    }
  }
  return result;
}

Result<ScaleAndZeroPoint> ObserveScales(const QuantizationArgs& args, const ScaleGrid& grid,
                                        std::span<const float> w, DType scale_dtype,
                                        Arithmetic arithmetic) {
  OCTAVO_CHECK(static_cast<int64_t>(w.size()) == grid.n * grid.k)
      << w.size() << " elements for [" << grid.n << ", " << grid.k << "]";
  if (!AllFinite(w)) return InvalidArgument("the weight holds NaN or Inf");
  OCTAVO_ASSIGN_OR_RETURN(const WeightObserver* observer, FindWeightObserver(args));
  OCTAVO_ASSIGN_OR_RETURN(const WeightRanges ranges, observer->observe(args, grid, w, scale_dtype));
  return ComputeScales(args, ranges.minima, ranges.maxima, grid.shape, scale_dtype, arithmetic);
}

Tensor QuantizeWithScales(const QuantizationArgs& args, const ScaleGrid& grid,
                          std::span<const float> w, const ScaleAndZeroPoint& scales,
                          DType scale_dtype, Arithmetic arithmetic) {
  Tensor codes(DType::kI8, {grid.n, grid.k});
  const std::span<int8_t> out = codes.mutable_data<int8_t>();
  if (arithmetic == Arithmetic::kFloat32 || scale_dtype == DType::kF32) {
    QuantizeAll(
        args, grid, w, scales, [](float value) { return value; }, out);
  } else if (scale_dtype == DType::kBF16) {
    QuantizeAll(args, grid, w, scales, RoundToBf16, out);
  } else {
    const auto round = [scale_dtype](float value) { return RoundToDType(value, scale_dtype); };
    QuantizeAll(args, grid, w, scales, round, out);
  }
  return codes;
}

Result<QuantizedWeight> QuantizeToNearest(const QuantizationArgs& args, std::span<const float> w,
                                          int64_t n, int64_t k, DType scale_dtype,
                                          Arithmetic arithmetic) {
  OCTAVO_RETURN_IF_ERROR(CheckIntegerWeight(args));
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid, MakeScaleGrid(args, n, k));
  OCTAVO_ASSIGN_OR_RETURN(ScaleAndZeroPoint scales,
                          ObserveScales(args, grid, w, scale_dtype, arithmetic));
  QuantizedWeight result;
  result.codes = QuantizeWithScales(args, grid, w, scales, scale_dtype, arithmetic);
  result.scale = std::move(scales.scale);
  result.zero_point = std::move(scales.zero_point);
  return result;
}

Tensor Dequantize(const QuantizationArgs& args, const QuantizedWeight& weight) {
  const Shape& shape = weight.codes.shape();
  OCTAVO_CHECK(shape.size() == 2) << ShapeString(shape);
  const Result<ScaleGrid> grid = MakeScaleGrid(args, shape[0], shape[1]);
  OCTAVO_CHECK(grid.ok()) << grid.status().message();
  OCTAVO_CHECK(weight.scale.elements() == Elements(grid->shape))
      << ShapeString(weight.scale.shape()) << " for " << ShapeString(grid->shape);
  Tensor result(DType::kF32, shape);
  const auto* codes = reinterpret_cast<const uint8_t*>(weight.codes.view().bytes);
  const CodeValues values = ValuesOfCodes(args);
  const std::span<const float> scale = weight.scale.data<float>();
  const float global = weight.global_scale.empty() ? 1.0F : weight.global_scale.data<float>()[0];
  const std::span<float> out = result.mutable_data<float>();
  std::span<const int8_t> zero_point;
  if (!weight.zero_point.empty()) zero_point = weight.zero_point.data<int8_t>();
  std::span<const int32_t> groups;
  if (!weight.group_of_column.empty()) groups = weight.group_of_column.data<int32_t>();
  for (int64_t row = 0; row < grid->n; ++row) {
    for (int64_t column = 0; column < grid->k; ++column) {
      const auto unit = static_cast<size_t>(
          groups.empty() ? grid->Unit(row, column)
                         : row * grid->columns + groups[static_cast<size_t>(column)]);
      const auto i = static_cast<size_t>(row * grid->k + column);
      const float zero = zero_point.empty() ? 0.0F : static_cast<float>(zero_point[unit]);
      out[i] = (values[codes[i]] - zero) * (scale[unit] / global);
    }
  }
  return result;
}

}  // namespace octavo
