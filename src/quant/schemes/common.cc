#include "quant/schemes/common.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/convert.h"

namespace octavo {

DeclaredTensor DeclareBias(const LinearLayer& layer) {
  return {.suffix = "bias",
          .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32},
          .shapes = {{layer.n}},
          .optional = !layer.has_bias};
}

Result<std::vector<float>> StackBiases(std::span<const LinearLayer> layers,
                                       std::span<const LayerViews> tensors) {
  std::vector<float> stacked;
  int64_t row = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (const auto bias = tensors[i].find("bias"); bias != tensors[i].end()) {
      stacked.resize(static_cast<size_t>(StackedRows(layers)), 0.0F);
      const std::span<float> rows(stacked.data() + row, static_cast<size_t>(layers[i].n));
      OCTAVO_RETURN_IF_ERROR(ToFloat(bias->second, rows).Annotate(layers[i].name + ".bias"));
    }
    row += layers[i].n;
  }
  return stacked;
}

int64_t StackedRows(std::span<const LinearLayer> layers) {
  int64_t rows = 0;
  for (const LinearLayer& layer : layers) rows += layer.n;
  return rows;
}

void AddDifference(std::string_view what, std::string_view found, std::string_view expected,
                   std::vector<std::string>* differences) {
  if (found != expected)
    differences->push_back(fmt::format("{} is {}, not {}", what, found, expected));
}

}  // namespace octavo
