#include "quant/quantize_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "quant/observers/observer.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

// What replaces a scale of exactly zero (checkpoint-format 4.3): the dtype's epsilon.
float ScaleEpsilon(DType dtype) {
  return dtype == DType::kBF16 ? 0x1p-7F : dtype == DType::kF16 ? 0x1p-10F : 0x1p-23F;
}

// A scale of NVFP4 that would be exactly zero.
constexpr float kSmallestGroupScale = 0.125F;
constexpr std::string_view kE8M0Scales = "torch.uint8";

bool HasMxScales(const QuantizationArgs& args) {
  return args.type == QuantizationType::kFloat && args.strategy == Strategy::kGroup &&
         args.scale_dtype == kE8M0Scales;
}

struct ScaleStep {
  float scale;  // before the guard against zero
  float zero_point;
};

ScaleStep Symmetric(float low, float high, float code_span) {
  return {std::max(-low, high) / (code_span / 2), 0.0F};
}

// Ours: the zero point is found against the scale as stored.
ScaleStep AsymmetricFloat32(float low, float high, float code_span, const CodeSet& codes,
                            DType dtype) {
  const float scale = RoundToDType((high - low) / code_span, dtype);
  const float zero_point = scale == 0 ? 0.0F : codes.min - low / scale;
  return {scale, zero_point};
}

ScaleStep AsymmetricReference(float low, float high, float code_span, const CodeSet& codes,
                              DType dtype) {
  const auto round = [dtype](float value) { return RoundToDType(value, dtype); };
  const float scale = round(round(high - low) / code_span);
  // 0 / 0 has no value in the library either; low / 0 is infinite and lands on the last code.
  if (scale == 0 && low == 0) return {scale, 0.0F};
  return {scale, round(codes.min - round(low / scale))};
}

// Scales of NVFP4: the group's own in the weights' dtype, as the library has it, or in float32.
float GroupScale(float own, float global_scale, DType dtype, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kReference) own = RoundToDType(own, dtype);
  const float scale = FloatFromE4M3(E4M3FromFloat(global_scale * own));
  return scale == 0 ? kSmallestGroupScale : scale;
}

// Codes of `count` elements that share a scale. `round` rounds to the weights' dtype. The branch on
// the kind is the caller's, or the loop would not vectorize.
template <CodeSet::Kind kind, typename Round>
void QuantizeRun(const float* w, int64_t count, float scale, float zero_point, const CodeSet& codes,
                 Round round, uint8_t* out) {
  const CodeSet set{.kind = kind, .min = codes.min, .max = codes.max};
  for (int64_t i = 0; i < count; ++i)
    out[i] = set.Encode(set.Round(round(round(w[i] / scale) + zero_point)));
}

template <typename Round>
void QuantizeAll(const CodeSet& codes, const ScaleGrid& grid, std::span<const float> w,
                 const ScaleAndZeroPoint& scales, Round round, uint8_t* out) {
  const std::span<const float> scale = scales.scale.data<float>();
  const float global = scales.global_scale.empty() ? 1.0F : scales.global_scale.data<float>()[0];
  std::span<const int8_t> zero_point;
  if (!scales.zero_point.empty()) zero_point = scales.zero_point.data<int8_t>();
  const auto run = codes.kind == CodeSet::Kind::kInt    ? QuantizeRun<CodeSet::Kind::kInt, Round>
                   : codes.kind == CodeSet::Kind::kE4M3 ? QuantizeRun<CodeSet::Kind::kE4M3, Round>
                                                        : QuantizeRun<CodeSet::Kind::kE2M1, Round>;
  for (int64_t row = 0; row < grid.n; ++row) {
    for (int64_t begin = 0; begin < grid.k; begin += grid.unit_columns) {
      const int64_t count = std::min(grid.unit_columns, grid.k - begin);
      const auto unit = static_cast<size_t>(grid.Unit(row, begin));
      const float zero = zero_point.empty() ? 0.0F : static_cast<float>(zero_point[unit]);
      const int64_t first = row * grid.k + begin;
      run(&w[static_cast<size_t>(first)], count, scale[unit] / global, zero, codes, round,
          out + first);
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

Result<CodeSet> CodesOf(const QuantizationArgs& args) {
  if (args.type == QuantizationType::kInt && args.num_bits >= 2 && args.num_bits <= 8) {
    const float half = static_cast<float>(1 << (args.num_bits - 1));
    return CodeSet{.kind = CodeSet::Kind::kInt, .min = -half, .max = half - 1};
  }
  if (args.type == QuantizationType::kFloat && args.symmetric && args.num_bits == 8)
    return CodeSet{.kind = CodeSet::Kind::kE4M3, .min = -kMaxE4M3, .max = kMaxE4M3};
  if (args.type == QuantizationType::kFloat && args.symmetric && args.num_bits == 4)
    return CodeSet{.kind = CodeSet::Kind::kE2M1, .min = -kMaxE2M1, .max = kMaxE2M1};
  return Unsupported(fmt::format(
      "[{}] cannot be quantized to: known are integers of 2 to 8 bits and symmetric floats of 8 or "
      "4",
      args.ToString()));
}

DType CodeDType(const CodeSet& codes) {
  switch (codes.kind) {
    case CodeSet::Kind::kInt:
      return DType::kI8;
    case CodeSet::Kind::kE4M3:
      return DType::kF8E4M3;
    case CodeSet::Kind::kE2M1:
      return DType::kU8;
  }
  return DType::kI8;
}

bool HasGlobalScale(const QuantizationArgs& args) {
  return args.strategy == Strategy::kTensorGroup;
}

float GlobalScale(float amax, DType dtype) {
  const float reciprocal =
      RoundToDType(1 / std::max(amax, std::numeric_limits<float>::min()), dtype);
  const float scale = RoundToDType(kMaxE4M3 * kMaxE2M1 * reciprocal, dtype);
  return std::isfinite(scale) ? scale : 1.0F;
}

float LargestMagnitude(std::span<const float> values) {
  float largest = 0;
  for (float value : values) {
    const float magnitude = std::fabs(value);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

Result<ScaleAndZeroPoint> ComputeScales(const QuantizationArgs& args, std::span<const float> minima,
                                        std::span<const float> maxima, const Shape& scale_shape,
                                        DType scale_dtype, Arithmetic arithmetic,
                                        float global_scale) {
  OCTAVO_CHECK(static_cast<int64_t>(minima.size()) == Elements(scale_shape) &&
               maxima.size() == minima.size())
      << minima.size() << " ranges for scales of shape " << ShapeString(scale_shape);
  OCTAVO_ASSIGN_OR_RETURN(const CodeSet codes, CodesOf(args));
  const float code_span = codes.max - codes.min;

  ScaleAndZeroPoint result;
  result.scale = Tensor(DType::kF32, scale_shape);
  if (!args.symmetric) result.zero_point = Tensor(DType::kI8, scale_shape);
  if (global_scale > 0) {
    OCTAVO_ASSIGN_OR_RETURN(result.global_scale, FromFloat({&global_scale, 1}, DType::kF32, {1}));
  }
  const std::span<float> scales = result.scale.mutable_data<float>();
  for (size_t unit = 0; unit < minima.size(); ++unit) {
    const float low = std::min(minima[unit], 0.0F);
    const float high = std::max(maxima[unit], 0.0F);
    const ScaleStep step = args.symmetric ? Symmetric(low, high, code_span)
                           : arithmetic == Arithmetic::kReference
                               ? AsymmetricReference(low, high, code_span, codes, scale_dtype)
                               : AsymmetricFloat32(low, high, code_span, codes, scale_dtype);
    if (HasMxScales(args)) {
      scales[unit] = MxScale(std::max(-low, high), codes.kind == CodeSet::Kind::kE2M1 ? 2 : 8);
    } else if (HasGlobalScale(args)) {
      scales[unit] = global_scale > 0
                         ? GroupScale(step.scale, global_scale, scale_dtype, arithmetic)
                         : step.scale;
    } else {
      const float scale = RoundToDType(step.scale, scale_dtype);
      scales[unit] = scale == 0 ? ScaleEpsilon(scale_dtype) : scale;
    }
    if (!std::isfinite(scales[unit]))
      return InvalidArgument(fmt::format("values from {} to {} need a scale that {} cannot hold",
                                         low, high, DTypeName(scale_dtype)));
    if (!args.symmetric) {
      const float zero_point = std::clamp(step.zero_point, codes.min, codes.max);
      result.zero_point.mutable_data<int8_t>()[unit] =
          static_cast<int8_t>(static_cast<int>(RoundToNearestEven(zero_point)));
    }
  }
  return result;
}

Result<ScaleAndZeroPoint> ObserveScales(const QuantizationArgs& args, const ScaleGrid& grid,
                                        std::span<const float> w, DType scale_dtype,
                                        Arithmetic arithmetic, const LayerFacts& facts) {
  OCTAVO_CHECK(static_cast<int64_t>(w.size()) == grid.n * grid.k)
      << w.size() << " elements for [" << grid.n << ", " << grid.k << "]";
  if (!AllFinite(w)) return InvalidArgument("the weight holds NaN or Inf");
  OCTAVO_ASSIGN_OR_RETURN(const WeightObserver* observer, FindWeightObserver(args));
  OCTAVO_ASSIGN_OR_RETURN(const WeightRanges ranges,
                          observer->observe(args, grid, w, scale_dtype, facts));
  const float global =
      HasGlobalScale(args)
          ? GlobalScale(std::max(facts.shared_amax, LargestMagnitude(w)), scale_dtype)
          : 0.0F;
  return ComputeScales(args, ranges.minima, ranges.maxima, grid.shape, scale_dtype, arithmetic,
                       global);
}

Tensor QuantizeWithScales(const QuantizationArgs& args, const ScaleGrid& grid,
                          std::span<const float> w, const ScaleAndZeroPoint& scales,
                          DType scale_dtype, Arithmetic arithmetic) {
  const Result<CodeSet> set = CodesOf(args);
  OCTAVO_CHECK(set.ok()) << set.status().message();
  Tensor codes(CodeDType(*set), {grid.n, grid.k});
  auto* out = reinterpret_cast<uint8_t*>(codes.bytes());
  // Where a float32 global scale takes part, the library's quotient is float32 too.
  if (arithmetic == Arithmetic::kFloat32 || scale_dtype == DType::kF32 || HasGlobalScale(args)) {
    QuantizeAll(
        *set, grid, w, scales, [](float value) { return value; }, out);
  } else if (scale_dtype == DType::kBF16) {
    QuantizeAll(*set, grid, w, scales, RoundToBf16, out);
  } else {
    const auto round = [scale_dtype](float value) { return RoundToDType(value, scale_dtype); };
    QuantizeAll(*set, grid, w, scales, round, out);
  }
  return codes;
}

Result<QuantizedWeight> QuantizeToNearest(const QuantizationArgs& args, std::span<const float> w,
                                          int64_t n, int64_t k, DType scale_dtype,
                                          Arithmetic arithmetic, const LayerFacts& facts) {
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid, MakeScaleGrid(args, n, k));
  OCTAVO_ASSIGN_OR_RETURN(ScaleAndZeroPoint scales,
                          ObserveScales(args, grid, w, scale_dtype, arithmetic, facts));
  QuantizedWeight result;
  result.codes = QuantizeWithScales(args, grid, w, scales, scale_dtype, arithmetic);
  result.scale = std::move(scales.scale);
  result.zero_point = std::move(scales.zero_point);
  result.global_scale = std::move(scales.global_scale);
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
