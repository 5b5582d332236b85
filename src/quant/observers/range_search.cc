#include "quant/observers/range_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "quant/quantize_weight.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

// |x| ^ norm in ways that vectorize, where a call of pow would not.
struct Square {
  float operator()(float x) const { return x * x; }
};
struct Cube {
  float operator()(float x) const { return std::fabs(x) * (x * x); }
};
// 2 ^ (norm * log2 |x|) for norm <= kMost, relative error below 1e-5: enough to compare sums. Below
// 2^-40 it is 0, from 2^40 on it stays.
struct FastPower {
  static constexpr float kMost = 3;
  float norm;

  float operator()(float x) const {
    constexpr uint32_t kLeast = 0x2B800000U;
    constexpr uint32_t kLargest = 0x53800000U;
    uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7FFFFFFFU;
    bits = bits < kLargest ? bits : kLargest;
    const uint32_t is_some = 0U - static_cast<uint32_t>(bits >= kLeast);
    // log2: exponent and mantissa in [sqrt(1/2), sqrt(2)), the mantissa's by its series in
    // z = (m - 1) / (m + 1), |z| <= 0.1716: the first term left out is 2 / (11 ln 2) z^11.
    constexpr uint32_t kHalfRoot = 0x3F3504F3U;  // sqrt(1/2)
    const uint32_t shifted = bits - kHalfRoot;
    const auto exponent = static_cast<float>(static_cast<int32_t>(shifted) >> 23);
    const float mantissa = std::bit_cast<float>((shifted & 0x007FFFFFU) + kHalfRoot);
    const float z = (mantissa - 1) / (mantissa + 1);
    const float zz = z * z;
    const float series =
        z * (2.88539008F +
             zz * (0.961796694F + zz * (0.577078016F + zz * (0.412198583F + zz * 0.320598898F))));
    const float power = norm * (exponent + series);
    // 2 ^ power: whole part into the exponent, the rest, |r| <= 1/2, by its Taylor series.
    const float whole = RoundToNearestEven(power);
    const float r = (power - whole) * 0.693147181F;
    const float rest =
        1 + r * (1 + r * (0.5F + r * (1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r / 720)))));
    const auto scale = static_cast<uint32_t>(static_cast<int32_t>(whole) + 127) << 23;
    const float result = rest * std::bit_cast<float>(scale);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(result) & is_some);
  }
};
struct AnyPower {
  float norm;
  float operator()(float x) const { return std::pow(std::fabs(x), norm); }
};

// Values of a row that share a scale.
struct Run {
  const float* values;
  const float* importance;  // or null: all alike
  int64_t count;
  float scale;
  float zero_point;
};

// The sum of importance * |rounded - value| ^ norm. The kind of codes and the norm are known when
// compiling, and sums are apart from what is summed, or the loop would not vectorize.
template <CodeSet::Kind kind, typename Norm>
float ErrorOf(const CodeSet& codes, const Norm& norm, const Run& run) {
  constexpr int64_t kPiece = 64;
  constexpr int64_t kSums = 8;
  const CodeSet set{.kind = kind, .min = codes.min, .max = codes.max};
  float sums[kSums] = {};
  for (int64_t begin = 0; begin < run.count; begin += kPiece) {
    const int64_t count = std::min(kPiece, run.count - begin);
    float errors[kPiece];
    for (int64_t i = 0; i < count; ++i) {
      const float value = run.values[begin + i];
      const float code = set.Round(value / run.scale + run.zero_point);
      errors[i] = norm((code - run.zero_point) * run.scale - value);
    }
    if (run.importance != nullptr)
      for (int64_t i = 0; i < count; ++i) errors[i] *= run.importance[begin + i];
    for (int64_t i = count; i < kPiece; ++i) errors[i] = 0;
    for (int64_t i = 0; i < kPiece; i += kSums) {
      for (int64_t j = 0; j < kSums; ++j) sums[j] += errors[i + j];
    }
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

template <typename Norm>
using ErrorFunction = float (*)(const CodeSet& codes, const Norm& norm, const Run& run);

template <typename Norm>
ErrorFunction<Norm> ErrorFunctionOf(CodeSet::Kind kind) {
  switch (kind) {
    case CodeSet::Kind::kInt:
      return ErrorOf<CodeSet::Kind::kInt, Norm>;
    case CodeSet::Kind::kE4M3:
      return ErrorOf<CodeSet::Kind::kE4M3, Norm>;
    case CodeSet::Kind::kE2M1:
      return ErrorOf<CodeSet::Kind::kE2M1, Norm>;
  }
  return nullptr;
}

// The error of each unit.
template <typename Norm>
std::vector<double> ErrorsBy(const Norm& norm, const CodeSet& codes, const ScaleGrid& grid,
                             std::span<const float> w, const ScaleAndZeroPoint& scales,
                             std::span<const float> importance) {
  const auto error = ErrorFunctionOf<Norm>(codes.kind);
  const std::span<const float> scale = scales.scale.data<float>();
  std::span<const int8_t> zero_points;
  if (!scales.zero_point.empty()) zero_points = scales.zero_point.data<int8_t>();
  std::vector<double> errors(scale.size(), 0.0);
  for (int64_t row = 0; row < grid.n; ++row) {
    for (int64_t begin = 0; begin < grid.k; begin += grid.unit_columns) {
      const auto unit = static_cast<size_t>(grid.Unit(row, begin));
      const float zero_point = zero_points.empty() ? 0.0F : static_cast<float>(zero_points[unit]);
      const Run run{.values = w.data() + row * grid.k + begin,
                    .importance = importance.empty() ? nullptr : importance.data() + begin,
                    .count = std::min(grid.unit_columns, grid.k - begin),
                    .scale = scale[unit],
                    .zero_point = zero_point};
      errors[unit] += static_cast<double>(error(codes, norm, run));
    }
  }
  return errors;
}

std::vector<double> Errors(const CodeSet& codes, const ScaleGrid& grid, std::span<const float> w,
                           const ScaleAndZeroPoint& scales, float norm,
                           std::span<const float> importance) {
  if (norm == 2) return ErrorsBy(Square(), codes, grid, w, scales, importance);
  if (norm == 3) return ErrorsBy(Cube(), codes, grid, w, scales, importance);
  if (norm <= FastPower::kMost)
    return ErrorsBy(FastPower{norm}, codes, grid, w, scales, importance);
  return ErrorsBy(AnyPower{norm}, codes, grid, w, scales, importance);
}

}  // namespace

Result<RangeSearch> ReadRangeSearch(const QuantizationArgs& args, const RangeSearch& defaults) {
  // triton_error_buffer tunes a GPU kernel of the library; averaging_constant is for activations.
  // Without `strict`, importance that is missing is taken as even, as here.
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject kwargs,
      StrictObject::Make(args.observer_kwargs, "observer_kwargs",
                         {"maxshrink", "grid", "norm", "patience", "expand", "triton_error_buffer",
                          "averaging_constant", "strict"}));
  RangeSearch search = defaults;
  OCTAVO_ASSIGN_OR_RETURN(search.max_shrink, kwargs.Double("maxshrink", search.max_shrink));
  OCTAVO_ASSIGN_OR_RETURN(search.grid, kwargs.Int("grid", search.grid));
  OCTAVO_ASSIGN_OR_RETURN(search.norm, kwargs.Double("norm", search.norm));
  OCTAVO_ASSIGN_OR_RETURN(search.patience, kwargs.Int("patience", search.patience));
  OCTAVO_ASSIGN_OR_RETURN(search.expand, kwargs.Double("expand", search.expand));
  const bool sane = search.max_shrink > 0 && search.max_shrink <= 1 && search.grid >= 1 &&
                    search.grid <= 10000 && search.norm > 0 && search.norm <= 100 &&
                    search.patience >= 1 && search.expand > 0 && search.expand <= 100;
  if (sane && search.max_shrink * static_cast<double>(search.grid) >= 1) return search;
  return InvalidArgument(
      "observer_kwargs: expected 0 < maxshrink <= 1, 1 <= grid <= 10000, maxshrink * grid >= 1, "
      "0 < norm <= 100, patience >= 1 and 0 < expand <= 100");
}

Result<WeightRanges> SearchRanges(const QuantizationArgs& args, const ScaleGrid& grid,
                                  std::span<const float> w, DType scale_dtype,
                                  const RangeSearch& search, std::span<const float> importance) {
  OCTAVO_ASSIGN_OR_RETURN(const CodeSet codes, CodesOf(args));
  QuantizationArgs whole = args;
  whole.observer.reset();
  OCTAVO_ASSIGN_OR_RETURN(const WeightObserver* minmax, FindWeightObserver(whole));
  OCTAVO_ASSIGN_OR_RETURN(const WeightRanges range,
                          minmax->observe(whole, grid, w, scale_dtype, {}));

  WeightRanges best = range;
  std::vector<double> least(range.minima.size(), std::numeric_limits<double>::infinity());
  const auto steps = static_cast<int64_t>(search.max_shrink * static_cast<double>(search.grid)) +
                     (search.last_step ? 1 : 0);
  int64_t without_better = 0;
  for (int64_t step = 0; step < steps && without_better < search.patience; ++step) {
    const double kept = 1.0 - static_cast<double>(step) / static_cast<double>(search.grid);
    const auto factor = static_cast<float>(search.expand * kept);
    WeightRanges tried = range;
    for (float& minimum : tried.minima) minimum *= factor;
    for (float& maximum : tried.maxima) maximum *= factor;
    OCTAVO_ASSIGN_OR_RETURN(ScaleAndZeroPoint scales,
                            ComputeScales(args, tried.minima, tried.maxima, grid.shape, scale_dtype,
                                          Arithmetic::kFloat32));
    // The bare scale of a group of zeros: nothing is divided by it but zeros.
    for (float& scale : scales.scale.mutable_data<float>()) scale = scale == 0 ? 1.0F : scale;
    const std::vector<double> errors =
        Errors(codes, grid, w, scales, static_cast<float>(search.norm), importance);
    ++without_better;
    for (size_t unit = 0; unit < errors.size(); ++unit) {
      if (!(errors[unit] < least[unit])) continue;
      least[unit] = errors[unit];
      best.minima[unit] = tried.minima[unit];
      best.maxima[unit] = tried.maxima[unit];
      without_better = 0;
    }
  }
  return best;
}

}  // namespace octavo
