#include "quant/schemes/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "quant/scale_grid.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

DeclaredTensor DeclareBias(const LinearLayer& layer) {
  return {.suffix = "bias",
          .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32},
          .shapes = {{layer.n}},
          .optional = !layer.has_bias};
}

DeclaredTensor DeclareWeightScale(const LinearLayer& layer) {
  const QuantizationArgs& weights = *layer.quantization.weights;
  std::vector<Shape> shapes;
  if (weights.strategy == Strategy::kTensor) {
    shapes = {{1}, {}};
  } else if (weights.strategy == Strategy::kChannel) {
    shapes = {{layer.n, 1}, {layer.n}};
  } else if (const auto grid = MakeScaleGrid(weights, layer.n, layer.k); grid.ok()) {
    shapes = {grid->shape};
  }
  return {.suffix = "weight_scale",
          .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32},
          .shapes = std::move(shapes)};
}

DeclaredTensor DeclareMxScale(const LinearLayer& layer) {
  constexpr int64_t kGroupSize = 32;
  return {.suffix = "weight_scale",
          .dtypes = {DType::kU8, DType::kF8E8M0},
          .shapes = {{layer.n, layer.k / kGroupSize}}};
}

Tensor PackMxScales(const Tensor& scale) {
  Tensor packed(DType::kU8, scale.shape());
  const std::span<const float> scales = scale.data<float>();
  const auto exponent = [](float value) { return static_cast<uint8_t>(std::ilogb(value) + 127); };
  std::transform(scales.begin(), scales.end(), packed.mutable_data<uint8_t>().begin(), exponent);
  return packed;
}

Result<Tensor> ScalesAsFloat(const LinearLayer& layer, const TensorView& scales) {
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid,
                          MakeScaleGrid(*layer.quantization.weights, layer.n, layer.k));
  Tensor wide(DType::kF32, grid.shape);
  const std::span<float> values = wide.mutable_data<float>();
  const auto* bytes = reinterpret_cast<const uint8_t*>(scales.bytes);
  if (scales.dtype == DType::kF8E4M3) {
    std::transform(bytes, bytes + values.size(), values.begin(), FloatFromE4M3);
  } else if (scales.dtype == DType::kU8 || scales.dtype == DType::kF8E8M0) {
    std::transform(bytes, bytes + values.size(), values.begin(), FloatFromE8M0);
  } else {
    OCTAVO_RETURN_IF_ERROR(ToFloat(scales, values));
  }
  for (float scale : values) {
    if (!std::isfinite(scale)) {
      return InvalidArgument(
          fmt::format("{}.weight_scale holds {}; the checkpoint is damaged", layer.name, scale));
    }
  }
  return wide;
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
