// The search for the range whose rounding errs least, on a grid of shrunken ranges: what several
// observers do with numbers of their own (quantization 4).
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "quant/observers/observer.h"

namespace octavo {

// What observer_kwargs may change; the defaults are those of `mse`.
struct RangeSearch {
  double max_shrink = 0.20;  // part of the range that may go
  int64_t grid = 100;        // steps into which the whole range is cut
  double norm = 2.4;         // of the error
  int64_t patience = 5;      // steps without any better unit until the search ends
  double expand = 1.0;       // of the range before it is shrunk
  bool last_step = false;    // whether the range shrunk by all of max_shrink is tried too
};

// InvalidArgument names a bad member of args.observer_kwargs.
Result<RangeSearch> ReadRangeSearch(const QuantizationArgs& args, const RangeSearch& defaults);

// Of each unit the range with the least sum of importance * |rounded - w| ^ norm. importance [k],
// or empty: all alike. A group under a global scale (NVFP4) is searched with its bare scale.
Result<WeightRanges> SearchRanges(const QuantizationArgs& args, const ScaleGrid& grid,
                                  std::span<const float> w, DType scale_dtype,
                                  const RangeSearch& search, std::span<const float> importance);

}  // namespace octavo
