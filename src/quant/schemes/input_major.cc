#include "quant/schemes/input_major.h"

#include <fmt/format.h>

#include <algorithm>

#include "quant/scale_grid.h"
#include "quant/schemes/column_groups.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"
#include "quant/schemes/int_weight.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Tiles of this many rows and columns stay in the first cache.
constexpr int64_t kTile = 64;

template <typename T>
Tensor Transposed(const Tensor& in) {
  const int64_t rows = in.dim(0);
  const int64_t columns = in.dim(1);
  Tensor out(in.dtype(), {columns, rows});
  const T* from = in.data<T>().data();
  T* to = out.mutable_data<T>().data();
  for (int64_t first_row = 0; first_row < rows; first_row += kTile) {
    const int64_t end_row = std::min(rows, first_row + kTile);
    for (int64_t first = 0; first < columns; first += kTile) {
      const int64_t end = std::min(columns, first + kTile);
      for (int64_t row = first_row; row < end_row; ++row)
        for (int64_t column = first; column < end; ++column)
          to[column * rows + row] = from[row * columns + column];
    }
  }
  return out;
}

}  // namespace

void AddInputMajorDifferences(const QuantizationScheme& declared,
                              bool (*is_format)(std::string_view),
                              std::vector<std::string>* differences) {
  if (!is_format(declared.format.value_or(""))) {
    differences->push_back("format is " + declared.format.value_or("not given"));
  }
  if (!declared.weights) {
    differences->emplace_back("weights are not quantized");
    return;
  }
  const QuantizationArgs& weights = *declared.weights;
  if (weights.type != QuantizationType::kInt)
    differences->push_back(fmt::format("weights: type is {}, not int", TypeString(weights)));
  if (weights.strategy != Strategy::kChannel && weights.strategy != Strategy::kGroup) {
    differences->push_back(fmt::format("weights: strategy is {}, not channel or group",
                                       StrategyName(weights.strategy)));
  }
  if (declared.input_activations) differences->emplace_back("input activations are quantized");
  if (declared.output_activations) differences->emplace_back("output activations are quantized");
}

int64_t InputGroups(const LinearLayer& layer) {
  const auto grid = MakeScaleGrid(*layer.quantization.weights, layer.n, layer.k);
  return grid.ok() ? grid->columns : 0;
}

void DeclareScalesAndBias(const LinearLayer& layer, std::vector<DeclaredTensor>* tensors) {
  tensors->push_back({.suffix = "scales",
                      .dtypes = {DType::kF16, DType::kBF16, DType::kF32},
                      .shapes = {{InputGroups(layer), layer.n}}});
  tensors->push_back(DeclareBias(layer));
}

Result<QuantizedWeight> FromInputMajor(const LinearLayer& layer, const LayerViews& tensors,
                                       const Tensor& codes, const Tensor& zero_points) {
  QuantizedWeight weight;
  auto scales = ToFloatTensor(tensors.at("scales"));
  if (!scales.ok()) return scales.status().Annotate(layer.name + ".scales");
  if (!AllFinite(scales->data<float>()))
    return InvalidArgument(layer.name + ".scales holds NaN or Inf; the checkpoint is damaged");
  weight.scale = Transposed<float>(*scales);
  weight.codes = Transposed<int8_t>(codes);
  const std::span<const int8_t> zeros = zero_points.data<int8_t>();
  const auto other =
      std::find_if(zeros.begin(), zeros.end(), [](int8_t zero) { return zero != 0; });
  if (!layer.quantization.weights->symmetric) {
    weight.zero_point = Transposed<int8_t>(zero_points);
  } else if (other != zeros.end()) {
    const int half = 1 << (layer.quantization.weights->num_bits - 1);
    return InvalidArgument(
        fmt::format("{}.qzeros holds the zero point {}, but the config says symmetric, which is {} "
                    "everywhere; correct sym (or zero_point) in config.json if the file is right",
                    layer.name, *other + half, half));
  }
  return weight;
}

Result<ResavedLayer> ResaveIntegers(const LinearLayer& layer, DType scale_dtype,
                                    QuantizedWeight weight) {
  ResavedLayer resaved{.layer = layer, .tensors = {}};
  QuantizationScheme& quantization = resaved.layer.quantization;
  const bool is_ordered = !weight.group_of_column.empty();
  quantization.weights->actorder = is_ordered ? ActOrder::kGroup : ActOrder::kNone;
  quantization.weights->actorder_spelling = is_ordered ? "group" : "";
  quantization.format.reset();
  quantization.format = InferFormat(quantization);
  FillDefaultObservers(&quantization);
  LinearLayer stored = resaved.layer;
  stored.model_dtype = scale_dtype;
  OCTAVO_ASSIGN_OR_RETURN(resaved.tensors, PackIntWeight(stored, std::move(weight)));
  return resaved;
}

Result<CodedWeight> CodedFromIntegers(const LinearLayer& layer, QuantizedWeight weight) {
  CodedWeight coded;
  OCTAVO_RETURN_IF_ERROR(ReadScales(layer, weight.scale, &coded));
  if (!weight.zero_point.empty()) SetZeroPoints(std::move(weight.zero_point), &coded);
  SetGroupedCodes(std::move(weight.codes), weight.group_of_column,
                  layer.quantization.weights->num_bits, &coded);
  return coded;
}

}  // namespace octavo
