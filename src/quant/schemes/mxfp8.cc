// MXFP8: E4M3 weights in groups of 32 with E8M0 scales; activations alike (W8A8) or floats (W8A16)
// (inference-schemes 2.7).
#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"
#include "quant/schemes/common.h"
#include "quant/schemes/group_float.h"

namespace octavo {

namespace {

constexpr GroupFloatForm kForm = {.type = "float8",
                                  .strategy = "group",
                                  .group_size = 32,
                                  .scale_dtype = "torch.uint8",
                                  .format = "mxfp8-quantized"};

std::vector<std::string> DifferencesA8(const QuantizationScheme& declared) {
  return DifferencesWithInput(kForm, declared);
}

std::vector<std::string> DifferencesA16(const QuantizationScheme& declared) {
  return DifferencesWithoutInput(kForm, declared);
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  return {{.suffix = "weight", .dtypes = {DType::kF8E4M3}, .shapes = {{layer.n, layer.k}}},
          DeclareMxScale(layer),
          DeclareBias(layer)};
}

Result<LayerTensors> Pack(const LinearLayer&, QuantizedWeight weight) {
  LayerTensors tensors;
  tensors["weight"] = std::move(weight.codes);
  tensors["weight_scale"] = PackMxScales(weight.scale);
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
  return PrepareCoded("W8A8 MXFP8", Read, layers, tensors, options, context);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA16(std::span<const LinearLayer> layers,
                                                   std::span<const LayerViews> tensors,
                                                   const PrepareOptions& options,
                                                   const Context& context) {
  return PrepareCoded("W8A16 MXFP8", Read, layers, tensors, options, context);
}

constexpr std::string_view kA8Examples[] = {"MXFP8"};
constexpr std::string_view kA16Examples[] = {"MXFP8A16"};

}  // namespace

extern const Scheme kW8A8Mxfp8;
const Scheme kW8A8Mxfp8 = {
    .name = "W8A8 MXFP8",
    .examples = kA8Examples,
    .differences = DifferencesA8,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = PrepareA8,
    .dequantize = DequantizeLayer,
};

extern const Scheme kW8A16Mxfp8;
const Scheme kW8A16Mxfp8 = {
    .name = "W8A16 MXFP8",
    .examples = kA16Examples,
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
