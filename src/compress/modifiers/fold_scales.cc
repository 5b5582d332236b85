#include "compress/modifiers/fold_scales.h"

#include <fmt/format.h>

#include <cmath>

#include "tensor/convert.h"

namespace octavo {

namespace {

void MultiplyColumns(std::span<const float> scales, GroupWork* group) {
  for (LayerWork& layer : group->layers) {
    const std::span<float> weight = layer.weight.mutable_data<float>();
    for (size_t row = 0; row < weight.size(); row += scales.size()) {
      for (size_t j = 0; j < scales.size(); ++j) weight[row + j] *= scales[j];
    }
    layer.changed = true;
  }
  group->statistics.DivideInput(scales);
}

}  // namespace

Status FoldIntoNorm(std::vector<float> scales, GroupWork* group) {
  const DType dtype = group->norm->dtype;
  const std::span<float> norm = group->norm->weight.mutable_data<float>();
  const float less = group->norm->less;
  for (size_t j = 0; j < norm.size(); ++j) {
    const float gain = norm[j] + less;
    const float stored = RoundToDType(gain / scales[j] - less, dtype);
    if (!std::isfinite(stored))
      return InvalidArgument(
          fmt::format("channel {}: {} / {} does not fit {}", j, gain, scales[j], DTypeName(dtype)));
    const float divisor = gain / (stored + less);
    if (std::isfinite(divisor) && divisor > 0) scales[j] = divisor;
    norm[j] = stored;
  }
  group->norm->changed = true;
  MultiplyColumns(scales, group);
  return OkStatus();
}

void FoldIntoRows(std::span<const float> scales, LayerWork* source, GroupWork* group) {
  const auto k = static_cast<size_t>(source->layer->k);
  const std::span<float> rows = source->weight.mutable_data<float>();
  const size_t first = rows.size() - scales.size() * k;
  for (size_t row = 0; row < scales.size(); ++row) {
    for (size_t j = 0; j < k; ++j) rows[first + row * k + j] /= scales[row];
  }
  source->changed = true;
  MultiplyColumns(scales, group);
}

}  // namespace octavo
