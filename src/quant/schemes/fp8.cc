// FP8: E4M3 weights with a scale a tensor, a channel or a block; E4M3 activations with a calibrated
// scale, or one a token or a group (W8A8), or floats (W8A16) (inference-schemes 2.2, 2.3).
#include <fmt/format.h>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

void AddWeightDifferences(const QuantizationScheme& declared,
                          std::vector<std::string>* differences) {
  if (!declared.weights) {
    differences->emplace_back("weights are not quantized");
    return;
  }
  const QuantizationArgs& weights = *declared.weights;
  AddDifference("weights: type", TypeString(weights), "float8", differences);
  const bool strategy = weights.strategy == Strategy::kTensor ||
                        weights.strategy == Strategy::kChannel ||
                        weights.strategy == Strategy::kBlock;
  if (!strategy) {
    differences->push_back(fmt::format("weights: strategy is {}, not tensor, channel or block",
                                       StrategyName(weights.strategy)));
  }
  if (!weights.symmetric) differences->emplace_back("weights: asymmetric, not symmetric");
  if (weights.dynamic != Dynamic::kFalse) differences->emplace_back("weights: dynamic, not static");
  if (declared.output_activations) differences->emplace_back("output activations are quantized");
  // The naive family shares one layout; its names only announce what is inside
  // (checkpoint-format 3.4).
  const std::string format = declared.format.value_or("float-quantized");
  if (format != "float-quantized" && format != "naive-quantized") {
    differences->push_back(
        fmt::format("format is {}, not float-quantized or naive-quantized", format));
  }
}

std::vector<std::string> DifferencesA8(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddWeightDifferences(declared, &differences);
  if (!declared.input_activations) {
    differences.emplace_back("input activations are not quantized");
  } else {
    AddDifference("input activations: type", TypeString(*declared.input_activations), "float8",
                  &differences);
    AddInputDifferences(declared.input_activations, &differences);
  }
  return differences;
}

std::vector<std::string> DifferencesA16(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddWeightDifferences(declared, &differences);
  if (declared.input_activations) differences.emplace_back("input activations are quantized");
  return differences;
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  std::vector<DeclaredTensor> tensors = {
      {.suffix = "weight", .dtypes = {DType::kF8E4M3}, .shapes = {{layer.n, layer.k}}},
      DeclareWeightScale(layer),
      // Frozen files store zeros, also as E4M3.
      {.suffix = "weight_zero_point",
       .dtypes = {DType::kF8E4M3, DType::kI8},
       .shapes = DeclareWeightScale(layer).shapes,
       .optional = true},
      DeclareBias(layer)};
  DeclareInput(layer, &tensors);
  return tensors;
}

Result<LayerTensors> Pack(const LinearLayer& layer, QuantizedWeight weight) {
  LayerTensors tensors;
  OCTAVO_ASSIGN_OR_RETURN(
      tensors["weight_scale"],
      FromFloat(weight.scale.data<float>(), layer.model_dtype, weight.scale.shape()));
  tensors["weight"] = std::move(weight.codes);
  return tensors;
}

Result<CodedWeight> Read(const LinearLayer& layer, const LayerViews& tensors) {
  CodedWeight weight;
  OCTAVO_RETURN_IF_ERROR(ReadScales(layer, tensors.at("weight_scale"), &weight));
  OCTAVO_RETURN_IF_ERROR(SetE4M3Codes(layer, tensors.at("weight"), &weight));
  return weight;
}

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& tensors) {
  QuantizedWeight weight;
  OCTAVO_RETURN_IF_ERROR(CheckE4M3(layer, tensors.at("weight")));
  OCTAVO_ASSIGN_OR_RETURN(weight.scale, ScalesAsFloat(layer, tensors.at("weight_scale")));
  weight.codes = Tensor::CopyOf(tensors.at("weight"));
  return weight;
}

Result<Tensor> DequantizeLayer(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, Unpack(layer, tensors));
  return Dequantize(*layer.quantization.weights, weight);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA8(std::span<const LinearLayer> layers,
                                                  std::span<const LayerViews> tensors,
                                                  const PrepareOptions& options,
                                                  const Context& context) {
  return PrepareCoded("W8A8 FP8", Read, layers, tensors, options, context);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA16(std::span<const LinearLayer> layers,
                                                   std::span<const LayerViews> tensors,
                                                   const PrepareOptions& options,
                                                   const Context& context) {
  return PrepareCoded("W8A16 FP8", Read, layers, tensors, options, context);
}

}  // namespace

extern const Scheme kW8A8Fp8;
const Scheme kW8A8Fp8 = {
    .name = "W8A8 FP8",
    .differences = DifferencesA8,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = PackInputScales,
    .stacks = SameInputScales,
    .prepare = PrepareA8,
    .dequantize = DequantizeLayer,
};

extern const Scheme kW8A16Fp8;
const Scheme kW8A16Fp8 = {
    .name = "W8A16 FP8",
    .differences = DifferencesA16,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = PrepareA16,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
