// The range whose rounding errs least, searched on a grid of shrunken ranges.
#include "quant/observers/range_search.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

Result<WeightRanges> Observe(const QuantizationArgs& args, const ScaleGrid& grid,
                             std::span<const float> w, DType scale_dtype, const LayerFacts&) {
  OCTAVO_ASSIGN_OR_RETURN(const RangeSearch search, ReadRangeSearch(args, {}));
  return SearchRanges(args, grid, w, scale_dtype, search, {});
}

}  // namespace

extern const WeightObserver kMseObserver;
const WeightObserver kMseObserver = {"memoryless_mse", Observe};

}  // namespace octavo
