// Observers: how values become the ranges that their scales cover (quantization 4).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "quant/args.h"
#include "quant/scale_grid.h"
#include "tensor/dtype.h"

namespace octavo {

struct LayerFacts;  // quant/quantize_weight.h

// The range of each unit of a ScaleGrid, row-major.
struct WeightRanges {
  std::vector<float> minima;
  std::vector<float> maxima;
};

// One line of observers.inc.
struct WeightObserver {
  // What a weight is observed with; activations' running forms of a name come to the same.
  std::string_view name;
  // w [n, k], finite; `scale_dtype` is the dtype that scales are stored in. InvalidArgument names a
  // bad member of args.observer_kwargs.
  Result<WeightRanges> (*observe)(const QuantizationArgs& args, const ScaleGrid& grid,
                                  std::span<const float> w, DType scale_dtype,
                                  const LayerFacts& facts);
  // Whether it wants LayerFacts::input_importance: then weights need calibration data too.
  bool wants_importance = false;
};

// An observer's name as the lists have it: case does not matter, '-' is '_'.
std::string ObserverName(std::string_view name);

// Why no observer is called `name` (as ObserverName gives it): Unsupported for one of the library's
// that is not here, NotFound with the nearest known otherwise. `here`: those that are.
Status UnknownObserver(std::string_view name, std::span<const std::string> here);

// The observer that args.observer names for a weight; null is memoryless_minmax; minmax,
// static_minmax and mse come to their memoryless forms, as a weight is seen once; fouroversix is
// another name of nvfp4_expanded_mse. Unsupported names
// one of the library's that is not here yet, NotFound the nearest known.
Result<const WeightObserver*> FindWeightObserver(const QuantizationArgs& args);

}  // namespace octavo
