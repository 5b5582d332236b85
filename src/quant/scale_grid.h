// ScaleGrid: which elements of a weight share a scale (checkpoint-format 3.3).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "quant/args.h"
#include "tensor/shape.h"

namespace octavo {

// A weight [n, k] cut into units of unit_rows x unit_columns, the last ones perhaps smaller. The
// grid of units has rows x columns scales, row-major.
//   tensor:  one unit, stored [1]          channel: 1 x k, stored [n, 1]
//   group:   1 x g, stored [n, k / g]      block:   R x C, stored [ceil(n / R), ceil(k / C)]
struct ScaleGrid {
  int64_t n = 0;
  int64_t k = 0;
  int64_t unit_rows = 1;
  int64_t unit_columns = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  Shape shape;  // as stored

  // The scale of element (row, column).
  int64_t Unit(int64_t row, int64_t column) const {
    return row / unit_rows * columns + column / unit_columns;
  }
};

// InvalidArgument when k is no multiple of the group size (it names the largest divisor), or
// Unsupported when weights cannot have the strategy.
Result<ScaleGrid> MakeScaleGrid(const QuantizationArgs& args, int64_t n, int64_t k);

}  // namespace octavo
