#include "quant/observers/range_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quant/quantize_weight.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

// |x| ^ norm. Squares and cubes, and the 2.4 of the defaults, would else be a call each.
float Power(float x, float norm) {
  return norm == 2 ? x * x : std::pow(std::fabs(x), norm);
}

// The sum of importance * |rounded - w| ^ norm over each unit.
std::vector<double> Errors(const CodeSet& codes, const ScaleGrid& grid, std::span<const float> w,
                           const ScaleAndZeroPoint& scales, float norm,
                           std::span<const float> importance) {
  const std::span<const float> scale = scales.scale.data<float>();
  std::span<const int8_t> zero_points;
  if (!scales.zero_point.empty()) zero_points = scales.zero_point.data<int8_t>();
  std::vector<double> errors(scale.size(), 0.0);
  for (int64_t row = 0; row < grid.n; ++row) {
    for (int64_t begin = 0; begin < grid.k; begin += grid.unit_columns) {
      const int64_t end = std::min(begin + grid.unit_columns, grid.k);
      const auto unit = static_cast<size_t>(grid.Unit(row, begin));
      const float zero_point = zero_points.empty() ? 0.0F : static_cast<float>(zero_points[unit]);
      float sum = 0;
      for (int64_t column = begin; column < end; ++column) {
        const float value = w[static_cast<size_t>(row * grid.k + column)];
        const float code = codes.Round(value / scale[unit] + zero_point);
        const float error = Power((code - zero_point) * scale[unit] - value, norm);
        sum += importance.empty() ? error : error * importance[static_cast<size_t>(column)];
      }
      errors[unit] += static_cast<double>(sum);
    }
  }
  return errors;
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
