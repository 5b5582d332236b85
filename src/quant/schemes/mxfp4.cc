// MXFP4: E2M1 weights in groups of 32 with E8M0 scales; activations alike (W4A4) or floats (W4A16)
// (inference-schemes 2.7).
#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"
#include "quant/schemes/common.h"
#include "quant/schemes/fp4_weight.h"
#include "quant/schemes/group_float.h"

namespace octavo {

namespace {

constexpr GroupFloatForm kForm = {.type = "float4",
                                  .strategy = "group",
                                  .group_size = 32,
                                  .scale_dtype = "torch.uint8",
                                  .format = "mxfp4-pack-quantized"};

std::vector<std::string> DifferencesA4(const QuantizationScheme& declared) {
  return DifferencesWithInput(kForm, declared);
}

std::vector<std::string> DifferencesA16(const QuantizationScheme& declared) {
  return DifferencesWithoutInput(kForm, declared);
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

constexpr std::string_view kA4Examples[] = {"MXFP4"};
constexpr std::string_view kA16Examples[] = {"MXFP4A16"};

}  // namespace

extern const Scheme kW4A4Mxfp4;
const Scheme kW4A4Mxfp4 = {
    .name = "W4A4 MXFP4",
    .examples = kA4Examples,
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
