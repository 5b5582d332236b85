#include <algorithm>
#include <array>

#include "quant/observers/observer.h"

namespace octavo {

namespace {

constexpr size_t kLanes = 16;

// Widens [*minimum, *maximum] to what `values` hold. Lanes, because the compiler may not reorder
// one chain of comparisons.
void Widen(std::span<const float> values, float* minimum, float* maximum) {
  std::array<float, kLanes> low;
  std::array<float, kLanes> high;
  low.fill(*minimum);
  high.fill(*maximum);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
    }
  }
  for (; i < values.size(); ++i) {
    low[0] = std::min(low[0], values[i]);
    high[0] = std::max(high[0], values[i]);
  }
  *minimum = *std::min_element(low.begin(), low.end());
  *maximum = *std::max_element(high.begin(), high.end());
}

// Every range holds zero (it always must, and ragged blocks are padded with it).
Result<WeightRanges> ObserveMinMax(const QuantizationArgs&, const ScaleGrid& grid,
                                   std::span<const float> w, DType, const LayerFacts&) {
  const auto units = static_cast<size_t>(grid.rows * grid.columns);
  WeightRanges ranges{std::vector<float>(units, 0.0F), std::vector<float>(units, 0.0F)};
  for (int64_t row = 0; row < grid.n; ++row) {
    for (int64_t column = 0; column < grid.columns; ++column) {
      const int64_t begin = column * grid.unit_columns;
      const int64_t end = std::min(begin + grid.unit_columns, grid.k);
      const auto unit = static_cast<size_t>(grid.Unit(row, begin));
      Widen(w.subspan(static_cast<size_t>(row * grid.k + begin), static_cast<size_t>(end - begin)),
            &ranges.minima[unit], &ranges.maxima[unit]);
    }
  }
  return ranges;
}

}  // namespace

extern const WeightObserver kMinMaxObserver;
const WeightObserver kMinMaxObserver = {"memoryless_minmax", ObserveMinMax};

}  // namespace octavo
