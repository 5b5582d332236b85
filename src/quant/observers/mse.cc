// The range whose rounding errs least, searched on a grid of shrunken ranges.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quant/observers/observer.h"
#include "quant/quantize_weight.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

// observer_kwargs, with the library's defaults. triton_error_buffer tunes a GPU kernel of its;
// averaging_constant is for activations.
struct Search {
  double max_shrink = 0.20;  // part of the range that may go
  int64_t grid = 100;        // steps into which the whole range is cut
  double norm = 2.4;         // of the error
  int64_t patience = 5;      // steps without any better unit until the search ends
  double expand = 1.0;       // of the range before it is shrunk
};

Result<Search> ReadSearch(const QuantizationArgs& args) {
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject kwargs,
                          StrictObject::Make(args.observer_kwargs, "observer_kwargs",
                                             {"maxshrink", "grid", "norm", "patience", "expand",
                                              "triton_error_buffer", "averaging_constant"}));
  Search search;
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

// The sum of |rounded - w| ^ norm over each unit.
std::vector<double> Errors(const QuantizationArgs& args, const ScaleGrid& grid,
                           std::span<const float> w, const ScaleAndZeroPoint& scales, float norm) {
  const CodeRange codes = IntegerRange(args);
  const std::span<const float> scale = scales.scale.data<float>();
  std::span<const int8_t> zero_points;
  if (!scales.zero_point.empty()) zero_points = scales.zero_point.data<int8_t>();
  std::vector<double> errors(scale.size(), 0.0);
  for (int64_t row = 0; row < grid.n; ++row) {
    for (int64_t begin = 0; begin < grid.k; begin += grid.unit_columns) {
      const int64_t count = std::min(grid.unit_columns, grid.k - begin);
      const auto unit = static_cast<size_t>(grid.Unit(row, begin));
      const int zero_point = zero_points.empty() ? 0 : zero_points[unit];
      float sum = 0;
      for (const float value :
           w.subspan(static_cast<size_t>(row * grid.k + begin), static_cast<size_t>(count))) {
        const int code = QuantizeInt(value, scale[unit], zero_point, codes.min, codes.max);
        const float rounded = static_cast<float>(code - zero_point) * scale[unit];
        sum += std::pow(std::fabs(rounded - value), norm);
      }
      errors[unit] += static_cast<double>(sum);
    }
  }
  return errors;
}

Result<WeightRanges> ObserveMse(const QuantizationArgs& args, const ScaleGrid& grid,
                                std::span<const float> w, DType scale_dtype) {
  OCTAVO_ASSIGN_OR_RETURN(const Search search, ReadSearch(args));
  QuantizationArgs whole = args;
  whole.observer.reset();
  OCTAVO_ASSIGN_OR_RETURN(const WeightObserver* minmax, FindWeightObserver(whole));
  OCTAVO_ASSIGN_OR_RETURN(const WeightRanges range, minmax->observe(whole, grid, w, scale_dtype));

  WeightRanges best = range;
  std::vector<double> least(range.minima.size(), std::numeric_limits<double>::infinity());
  const auto steps = static_cast<int64_t>(search.max_shrink * static_cast<double>(search.grid));
  int64_t without_better = 0;
  for (int64_t step = 0; step < steps && without_better < search.patience; ++step) {
    const double kept = 1.0 - static_cast<double>(step) / static_cast<double>(search.grid);
    const auto factor = static_cast<float>(search.expand * kept);
    WeightRanges tried = range;
    for (float& minimum : tried.minima) minimum *= factor;
    for (float& maximum : tried.maxima) maximum *= factor;
    OCTAVO_ASSIGN_OR_RETURN(const ScaleAndZeroPoint scales,
                            ComputeScales(args, tried.minima, tried.maxima, grid.shape, scale_dtype,
                                          Arithmetic::kFloat32));
    const std::vector<double> errors =
        Errors(args, grid, w, scales, static_cast<float>(search.norm));
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

}  // namespace

extern const WeightObserver kMseObserver;
const WeightObserver kMseObserver = {"memoryless_mse", ObserveMse};

}  // namespace octavo
