#include "quant/scale_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {

namespace {

int64_t LargestDivisorUpTo(int64_t k, int64_t limit) {
  for (int64_t divisor = std::min(k, limit); divisor > 1; --divisor) {
    if (k % divisor == 0) return divisor;
  }
  return 1;
}

}  // namespace

Result<ScaleGrid> MakeScaleGrid(const QuantizationArgs& args, int64_t n, int64_t k) {
  if (n <= 0 || k <= 0)
    return InvalidArgument(fmt::format("a weight of shape [{}, {}] cannot be quantized", n, k));
  ScaleGrid grid;
  grid.n = n;
  grid.k = k;
  switch (args.strategy) {
    case Strategy::kTensor:
      grid.unit_rows = n;
      grid.unit_columns = k;
      break;
    case Strategy::kChannel:
      grid.unit_columns = k;
      break;
    case Strategy::kGroup:
    case Strategy::kTensorGroup:
      grid.unit_columns = args.group_size.value_or(k);
      if (k % grid.unit_columns != 0)
        return InvalidArgument(fmt::format(
            "the group size {} does not divide the {} columns; use a group size of {}, or ignore "
            "the layer",
            grid.unit_columns, k, LargestDivisorUpTo(k, grid.unit_columns)));
      break;
    case Strategy::kBlock:
      grid.unit_rows = args.block_structure->first;
      grid.unit_columns = args.block_structure->second;
      break;
    case Strategy::kToken:
    case Strategy::kAttnHead:
      return Unsupported(
          fmt::format("weights cannot have the strategy {}", StrategyName(args.strategy)));
  }
  grid.rows = (n + grid.unit_rows - 1) / grid.unit_rows;
  grid.columns = (k + grid.unit_columns - 1) / grid.unit_columns;
  grid.shape = args.strategy == Strategy::kTensor ? Shape{1} : Shape{grid.rows, grid.columns};
  return grid;
}

}  // namespace octavo
