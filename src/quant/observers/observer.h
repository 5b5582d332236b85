// Observers: how the values of a weight become the ranges that its scales cover (quantization 4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "quant/args.h"
#include "quant/scale_grid.h"

namespace octavo {

// The range of each unit of a ScaleGrid, row-major.
struct WeightRanges {
  std::vector<float> minima;
  std::vector<float> maxima;
};

// One line of observers.inc.
struct WeightObserver {
  // What a weight is observed with; activations' running forms of a name come to the same.
  std::string_view name;
  // w [n, k], finite.
  Result<WeightRanges> (*observe)(const QuantizationArgs& args, const ScaleGrid& grid,
                                  std::span<const float> w);
};

// The observer that args.observer names for a weight; null is memoryless_minmax, and minmax and
// static_minmax come to it, as a weight is seen once. Case does not matter, '-' is '_'. Unsupported
// names one of the library's that is not here yet, NotFound the nearest known.
Result<const WeightObserver*> FindWeightObserver(const QuantizationArgs& args);

}  // namespace octavo
