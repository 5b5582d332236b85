#include "quant/schemes/int_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "quant/bit_packing.h"
#include "quant/scale_grid.h"
#include "quant/schemes/column_groups.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

const QuantizationArgs& Weights(const LinearLayer& layer) {
  return *layer.quantization.weights;
}

bool IsPacked(const LinearLayer& layer) {
  return layer.quantization.format == "pack-quantized";
}

// Asymmetric tensors keep one unpacked zero point also where codes are packed.
bool HasPackedZeroPoints(const LinearLayer& layer) {
  return IsPacked(layer) && Weights(layer).strategy != Strategy::kTensor;
}

// Words of `count` codes, also as files had them whose streams did not cross words.
std::vector<int64_t> Widths(int64_t count, int bits) {
  const int64_t per_word = 32 / bits;
  return {PackedWords(count, bits), (count + per_word - 1) / per_word};
}

int64_t ScaleColumns(const LinearLayer& layer) {
  const auto grid = MakeScaleGrid(Weights(layer), layer.n, layer.k);
  return grid.ok() ? grid->columns : 0;
}

DeclaredTensor DeclareZeroPoint(const LinearLayer& layer) {
  DeclaredTensor declared{.suffix = "weight_zero_point",
                          .dtypes = {DType::kI8},
                          .shapes = DeclareWeightScale(layer).shapes,
                          // Old and frozen files store zeros for symmetric schemes too.
                          .optional = Weights(layer).symmetric};
  if (!HasPackedZeroPoints(layer)) return declared;
  declared.dtypes = {DType::kI32, DType::kI8};
  std::vector<Shape> shapes;
  for (const int64_t words : Widths(layer.n, Weights(layer).num_bits))
    shapes.push_back({words, ScaleColumns(layer)});
  declared.shapes.insert(declared.shapes.begin(), shapes.begin(), shapes.end());
  return declared;
}

// The zero points, I8 of the scales' shape; empty where there are none.
Result<Tensor> ReadZeroPoints(const LinearLayer& layer, const LayerViews& tensors) {
  const auto found = tensors.find("weight_zero_point");
  if (found == tensors.end()) return Tensor();
  Tensor zero_points;
  if (found->second.dtype == DType::kI32) {
    auto unpacked = UnpackColumns(found->second, layer.n, Weights(layer).num_bits);
    if (!unpacked.ok()) return unpacked.status().Annotate(layer.name + ".weight_zero_point");
    zero_points = *std::move(unpacked);
  } else {
    zero_points = Tensor::CopyOf(found->second);
  }
  if (zero_points.elements() != tensors.at("weight_scale").elements()) {
    return InvalidArgument(fmt::format("{}.weight_zero_point holds {} values for {} scales",
                                       layer.name, zero_points.elements(),
                                       tensors.at("weight_scale").elements()));
  }
  const std::span<const int8_t> values = zero_points.data<int8_t>();
  const bool zero =
      std::all_of(values.begin(), values.end(), [](int8_t value) { return value == 0; });
  if (!Weights(layer).symmetric) return zero_points;
  if (zero) return Tensor();
  return InvalidArgument(layer.name + ".weight_zero_point is not zero, but declared symmetric");
}

Result<Tensor> ReadCodes(const LinearLayer& layer, const LayerViews& tensors) {
  const int bits = Weights(layer).num_bits;
  if (!IsPacked(layer)) {
    const TensorView& codes = tensors.at("weight");
    const std::span<const int8_t> values = codes.data<int8_t>();
    const int half = 1 << (bits - 1);
    const auto outside = std::find_if(values.begin(), values.end(),
                                      [&](int8_t code) { return code < -half || code >= half; });
    if (outside == values.end()) return Tensor::CopyOf(codes);
    return InvalidArgument(
        fmt::format("{}.weight holds the code {}, but {} bits are declared: {} to {}", layer.name,
                    *outside, bits, -half, half - 1));
  }
  int64_t shape[2];
  std::memcpy(shape, tensors.at("weight_shape").bytes, sizeof(shape));
  if (shape[0] != layer.n || shape[1] != layer.k) {
    return InvalidArgument(fmt::format("{}.weight_shape says [{}, {}], expected [{}, {}]",
                                       layer.name, shape[0], shape[1], layer.n, layer.k));
  }
  auto codes = UnpackRows(tensors.at("weight_packed"), layer.k, bits);
  if (!codes.ok()) return codes.status().Annotate(layer.name + ".weight_packed");
  return codes;
}

// Four-bit codes in a stream are nibbles as they lie.
bool ReadsInPlace(const LinearLayer& layer, const LayerViews& tensors) {
  return IsPacked(layer) && Weights(layer).num_bits == 4 &&
         tensors.at("weight_packed").shape[1] == PackedWords(layer.k, 4);
}

}  // namespace

void AddIntWeightDifferences(const QuantizationScheme& declared,
                             std::vector<std::string>* differences) {
  if (!declared.weights) {
    differences->emplace_back("weights are not quantized");
    return;
  }
  const QuantizationArgs& weights = *declared.weights;
  if (weights.type != QuantizationType::kInt || weights.num_bits < 2 || weights.num_bits > 8) {
    differences->push_back(
        fmt::format("weights: type is {}, not int2 to int8", TypeString(weights)));
  }
  const bool strategy = weights.strategy == Strategy::kTensor ||
                        weights.strategy == Strategy::kChannel ||
                        weights.strategy == Strategy::kGroup;
  if (!strategy) {
    differences->push_back(fmt::format("weights: strategy is {}, not tensor, channel or group",
                                       StrategyName(weights.strategy)));
  }
  if (weights.dynamic != Dynamic::kFalse) differences->emplace_back("weights: dynamic, not static");
  const std::string format = declared.format.value_or("pack-quantized");
  if (format != "pack-quantized" && format != "int-quantized" && format != "naive-quantized") {
    differences->push_back(
        fmt::format("format is {}, not pack-quantized, int-quantized or naive-quantized", format));
  }
}

std::vector<DeclaredTensor> DeclareIntWeight(const LinearLayer& layer) {
  std::vector<DeclaredTensor> tensors;
  if (IsPacked(layer)) {
    std::vector<Shape> shapes;
    for (const int64_t words : Widths(layer.k, Weights(layer).num_bits))
      shapes.push_back({layer.n, words});
    tensors.push_back(
        {.suffix = "weight_packed", .dtypes = {DType::kI32}, .shapes = std::move(shapes)});
    tensors.push_back({.suffix = "weight_shape", .dtypes = {DType::kI64}, .shapes = {{2}}});
    tensors.push_back({.suffix = "weight_g_idx",
                       .dtypes = {DType::kI32},
                       .shapes = {{layer.k}},
                       .optional = true});
  } else {
    tensors.push_back({.suffix = "weight", .dtypes = {DType::kI8}, .shapes = {{layer.n, layer.k}}});
  }
  tensors.push_back(DeclareWeightScale(layer));
  tensors.push_back(DeclareZeroPoint(layer));
  tensors.push_back(DeclareBias(layer));
  DeclareInput(layer, &tensors);
  return tensors;
}

Result<LayerTensors> PackIntWeight(const LinearLayer& layer, QuantizedWeight weight) {
  LayerTensors tensors;
  OCTAVO_ASSIGN_OR_RETURN(
      tensors["weight_scale"],
      FromFloat(weight.scale.data<float>(), layer.model_dtype, weight.scale.shape()));
  const int bits = Weights(layer).num_bits;
  if (!weight.zero_point.empty()) {
    tensors["weight_zero_point"] = HasPackedZeroPoints(layer) ? PackColumns(weight.zero_point, bits)
                                                              : std::move(weight.zero_point);
  }
  if (!IsPacked(layer)) {
    tensors["weight"] = std::move(weight.codes);
    return tensors;
  }
  tensors["weight_packed"] = PackRows(weight.codes, bits);
  if (!weight.group_of_column.empty()) tensors["weight_g_idx"] = std::move(weight.group_of_column);
  Tensor& shape = tensors["weight_shape"] = Tensor(DType::kI64, {2});
  shape.mutable_data<int64_t>()[0] = layer.n;
  shape.mutable_data<int64_t>()[1] = layer.k;
  return tensors;
}

Result<QuantizedWeight> UnpackIntWeight(const LinearLayer& layer, const LayerViews& tensors) {
  QuantizedWeight weight;
  OCTAVO_ASSIGN_OR_RETURN(weight.codes, ReadCodes(layer, tensors));
  OCTAVO_ASSIGN_OR_RETURN(weight.scale, ScalesAsFloat(layer, tensors.at("weight_scale")));
  OCTAVO_ASSIGN_OR_RETURN(weight.zero_point, ReadZeroPoints(layer, tensors));
  OCTAVO_ASSIGN_OR_RETURN(weight.group_of_column,
                          ReadGroupOfColumn(layer, tensors, "weight_g_idx"));
  return weight;
}

Result<Tensor> DequantizeIntWeight(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, UnpackIntWeight(layer, tensors));
  return Dequantize(Weights(layer), weight);
}

Result<CodedWeight> ReadIntWeight(const LinearLayer& layer, const LayerViews& tensors) {
  CodedWeight weight;
  OCTAVO_RETURN_IF_ERROR(ReadScales(layer, tensors.at("weight_scale"), &weight));
  OCTAVO_ASSIGN_OR_RETURN(Tensor zero_points, ReadZeroPoints(layer, tensors));
  if (!zero_points.empty()) SetZeroPoints(std::move(zero_points), &weight);
  OCTAVO_ASSIGN_OR_RETURN(const Tensor groups, ReadGroupOfColumn(layer, tensors, "weight_g_idx"));
  if (groups.empty() && ReadsInPlace(layer, tensors)) {
    const TensorView& packed = tensors.at("weight_packed");
    weight.matrix.format = CodeFormat::kNibble;
    weight.matrix.table = Int4Table();
    weight.matrix.codes = reinterpret_cast<const uint8_t*>(packed.bytes);
    weight.matrix.row_bytes = packed.shape[1] * 4;
    return weight;
  }
  OCTAVO_ASSIGN_OR_RETURN(Tensor codes, ReadCodes(layer, tensors));
  SetGroupedCodes(std::move(codes), groups, Weights(layer).num_bits, &weight);
  return weight;
}

}  // namespace octavo
