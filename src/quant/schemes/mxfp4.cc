// MXFP4: E2M1 weights in groups of 32 with E8M0 scales; activations alike (W4A4) or floats (W4A16)
// (inference-schemes 2.7).
#include <fmt/format.h>

#include <cmath>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"
#include "quant/schemes/common.h"
#include "quant/schemes/fp4_weight.h"
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
  AddDifference("weights: type", TypeString(weights), "float4", differences);
  AddDifference("weights: strategy", StrategyName(weights.strategy), "group", differences);
  AddDifference("weights: group size", fmt::to_string(weights.group_size.value_or(0)), "32",
                differences);
  AddDifference("weights: scale_dtype", weights.scale_dtype.value_or("not named"), "torch.uint8",
                differences);
  if (!weights.symmetric) differences->emplace_back("weights: asymmetric, not symmetric");
  if (declared.output_activations) differences->emplace_back("output activations are quantized");
  AddDifference("format", declared.format.value_or("mxfp4-pack-quantized"), "mxfp4-pack-quantized",
                differences);
}

std::vector<std::string> DifferencesA4(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddWeightDifferences(declared, &differences);
  if (!declared.input_activations) {
    differences.emplace_back("input activations are not quantized");
  } else {
    AddDifference("input activations: type", TypeString(*declared.input_activations), "float4",
                  &differences);
    AddDifference("input activations: strategy", StrategyName(declared.input_activations->strategy),
                  "group", &differences);
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
  return {DeclareFp4Codes(layer), DeclareMxScale(layer), DeclareBias(layer)};
}

Result<LayerTensors> Pack(const LinearLayer&, QuantizedWeight weight) {
  LayerTensors tensors;
  tensors["weight_packed"] = PackFp4(weight.codes);
  tensors["weight_scale"] = PackMxScales(weight.scale);
  return tensors;
}

Result<CodedWeight> Read(const LinearLayer& layer, const LayerViews& tensors) {
  CodedWeight weight;
  OCTAVO_RETURN_IF_ERROR(ReadScales(layer, tensors.at("weight_scale"), &weight));
  SetFp4Codes(tensors.at("weight_packed"), &weight);
  return weight;
}

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& tensors) {
  QuantizedWeight weight;
  OCTAVO_ASSIGN_OR_RETURN(weight.scale, ScalesAsFloat(layer, tensors.at("weight_scale")));
  weight.codes = UnpackFp4(tensors.at("weight_packed"));
  return weight;
}

Result<Tensor> DequantizeLayer(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, Unpack(layer, tensors));
  return Dequantize(*layer.quantization.weights, weight);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA4(std::span<const LinearLayer> layers,
                                                  std::span<const LayerViews> tensors,
                                                  const PrepareOptions& options,
                                                  const Context& context) {
  return PrepareCoded("W4A4 MXFP4", Read, layers, tensors, options, context);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA16(std::span<const LinearLayer> layers,
                                                   std::span<const LayerViews> tensors,
                                                   const PrepareOptions& options,
                                                   const Context& context) {
  return PrepareCoded("W4A16 MXFP4", Read, layers, tensors, options, context);
}

}  // namespace

extern const Scheme kW4A4Mxfp4;
const Scheme kW4A4Mxfp4 = {
    .name = "W4A4 MXFP4",
    .differences = DifferencesA4,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = PrepareA4,
    .dequantize = DequantizeLayer,
};

extern const Scheme kW4A16Mxfp4;
const Scheme kW4A16Mxfp4 = {
    .name = "W4A16 MXFP4",
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
