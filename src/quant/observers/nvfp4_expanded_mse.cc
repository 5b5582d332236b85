// As mse, from 1.8 times the range down: an E2M1 group may do better if its largest value is
// clipped to 4, or if the next code up is free.
#include "quant/observers/range_search.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

Result<WeightRanges> Observe(const QuantizationArgs& args, const ScaleGrid& grid,
                             std::span<const float> w, DType scale_dtype, const LayerFacts&) {
  OCTAVO_ASSIGN_OR_RETURN(
      const RangeSearch search,
      ReadRangeSearch(args,
                      {.max_shrink = 1 - 0.8 / 1.8, .grid = 200, .patience = 1000, .expand = 1.8}));
  return SearchRanges(args, grid, w, scale_dtype, search, {});
}

}  // namespace

extern const WeightObserver kNvfp4ExpandedMseObserver;
const WeightObserver kNvfp4ExpandedMseObserver = {"nvfp4_expanded_mse", Observe};

}  // namespace octavo
