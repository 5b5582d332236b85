#include "quant/schemes/column_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "quant/scale_grid.h"

namespace octavo {

namespace {

// Every group has the same number of columns.
Status CheckSizes(std::span<const int32_t> groups, int64_t columns, const std::string& name) {
  std::vector<int64_t> sizes(static_cast<size_t>(columns), 0);
  for (const int32_t group : groups) {
    if (group < 0 || group >= columns) {
      return InvalidArgument(
          fmt::format("{} holds {}, but there are {} groups", name, group, columns));
    }
    ++sizes[static_cast<size_t>(group)];
  }
  const int64_t expected = std::ssize(groups) / columns;
  for (size_t group = 0; group < sizes.size(); ++group) {
    if (sizes[group] == expected) continue;
    return InvalidArgument(fmt::format("{}: group {} has {} columns, expected {}", name, group,
                                       sizes[group], expected));
  }
  return OkStatus();
}

std::vector<int64_t> SortedByGroup(std::span<const int32_t> groups) {
  std::vector<int64_t> order(groups.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return groups[static_cast<size_t>(a)] < groups[static_cast<size_t>(b)];
  });
  return order;
}

Tensor TakeColumns(const Tensor& codes, const std::vector<int64_t>& order) {
  Tensor taken(DType::kI8, codes.shape());
  const std::span<const int8_t> in = codes.data<int8_t>();
  const std::span<int8_t> out = taken.mutable_data<int8_t>();
  for (size_t i = 0; i < in.size(); i += order.size()) {
    for (size_t j = 0; j < order.size(); ++j) out[i + j] = in[i + static_cast<size_t>(order[j])];
  }
  return taken;
}

}  // namespace

Result<Tensor> ReadGroupOfColumn(const LinearLayer& layer, const LayerViews& tensors,
                                 const std::string& suffix) {
  const auto found = tensors.find(suffix);
  if (found == tensors.end()) return Tensor();
  Tensor groups = Tensor::CopyOf(found->second);
  const std::span<const int32_t> values = groups.data<int32_t>();
  // What was never set says so with -1.
  if (std::all_of(values.begin(), values.end(), [](int32_t group) { return group == -1; }))
    return Tensor();
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid,
                          MakeScaleGrid(*layer.quantization.weights, layer.n, layer.k));
  OCTAVO_RETURN_IF_ERROR(CheckSizes(values, grid.columns, layer.name + "." + suffix));
  // Of equal sizes and in order: neighbours.
  if (std::is_sorted(values.begin(), values.end())) return Tensor();
  return groups;
}

void SetGroupedCodes(Tensor codes, const Tensor& group_of_column, int bits, CodedWeight* weight) {
  if (!group_of_column.empty()) {
    weight->column_order = SortedByGroup(group_of_column.data<int32_t>());
    codes = TakeColumns(codes, weight->column_order);
  }
  SetIntegerCodes(codes, bits, weight);
}

}  // namespace octavo
