// As nvfp4_expanded_mse, with errors weighed by the mean square of the inputs that they meet.
#include "quant/observers/range_search.h"
#include "quant/quantize_weight.h"

namespace octavo {

namespace {

Result<WeightRanges> Observe(const QuantizationArgs& args, const ScaleGrid& grid,
                             std::span<const float> w, DType scale_dtype, const LayerFacts& facts) {
  OCTAVO_ASSIGN_OR_RETURN(const RangeSearch search,
                          ReadRangeSearch(args, {.max_shrink = 1 - 0.8 / 1.8,
                                                 .grid = 200,
                                                 .patience = 1000,
                                                 .expand = 1.8,
                                                 .last_step = true}));
  return SearchRanges(args, grid, w, scale_dtype, search, facts.input_importance);
}

}  // namespace

extern const WeightObserver kNvfp4ExpandedImatrixObserver;
const WeightObserver kNvfp4ExpandedImatrixObserver = {"nvfp4_expanded_imatrix", Observe,
                                                      /*wants_importance=*/true};

}  // namespace octavo
