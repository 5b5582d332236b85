// NVFP4: E2M1 weights in groups of 16 with E4M3 scales and one global scale; activations alike
// (W4A4) or floats (W4A16) (inference-schemes 2.6).
#include <fmt/format.h>

#include <cmath>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"
#include "quant/schemes/common.h"
#include "quant/schemes/fp4_weight.h"
#include "quant/schemes/group_float.h"
#include "quant/schemes/input_rounding.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

constexpr int64_t kGroupSize = 16;

constexpr GroupFloatForm kForm = {.type = "float4",
                                  .strategy = "tensor_group",
                                  .group_size = kGroupSize,
                                  .scale_dtype = "",
                                  .format = "nvfp4-pack-quantized"};

std::vector<std::string> DifferencesA4(const QuantizationScheme& declared) {
  return DifferencesWithInput(kForm, declared);
}

std::vector<std::string> DifferencesA16(const QuantizationScheme& declared) {
  return DifferencesWithoutInput(kForm, declared);
}

// input_global_scale, as weight_global_scale, is a divisor: 448 * 6 / amax.
std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  std::vector<DeclaredTensor> tensors = {
      DeclareFp4Codes(layer),
      {.suffix = "weight_scale",
       .dtypes = {DType::kF8E4M3},
       .shapes = {{layer.n, layer.k / kGroupSize}}},
      {.suffix = "weight_global_scale", .dtypes = {DType::kF32}, .shapes = {{1}, {}}},
      DeclareBias(layer)};
  DeclareInput(layer, &tensors);
  return tensors;
}

Result<LayerTensors> Pack(const LinearLayer&, QuantizedWeight weight) {
  LayerTensors tensors;
  tensors["weight_packed"] = PackFp4(weight.codes);
  Tensor& scale = tensors["weight_scale"] = Tensor(DType::kF8E4M3, weight.scale.shape());
  const std::span<const float> scales = weight.scale.data<float>();
  auto* bytes = reinterpret_cast<uint8_t*>(scale.bytes());
  for (size_t i = 0; i < scales.size(); ++i) bytes[i] = E4M3FromFloat(scales[i]);
  tensors["weight_global_scale"] = std::move(weight.global_scale);
  return tensors;
}

Result<float> ReadGlobalScale(const LinearLayer& layer, const LayerViews& tensors) {
  float global = 0;
  OCTAVO_RETURN_IF_ERROR(ToFloat(tensors.at("weight_global_scale"), {&global, 1}));
  if (std::isfinite(global) && global > 0) return global;
  return InvalidArgument(
      fmt::format("{}.weight_global_scale is {}; the checkpoint is damaged", layer.name, global));
}

Result<CodedWeight> Read(const LinearLayer& layer, const LayerViews& tensors) {
  CodedWeight weight;
  OCTAVO_RETURN_IF_ERROR(ReadScales(layer, tensors.at("weight_scale"), &weight));
  OCTAVO_ASSIGN_OR_RETURN(const float global, ReadGlobalScale(layer, tensors));
  weight.matrix.multiplier = 1 / global;
  SetFp4Codes(tensors.at("weight_packed"), &weight);
  return weight;
}

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& tensors) {
  QuantizedWeight weight;
  OCTAVO_ASSIGN_OR_RETURN(weight.scale, ScalesAsFloat(layer, tensors.at("weight_scale")));
  OCTAVO_ASSIGN_OR_RETURN(const float global, ReadGlobalScale(layer, tensors));
  OCTAVO_ASSIGN_OR_RETURN(weight.global_scale, FromFloat({&global, 1}, DType::kF32, {1}));
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
  return PrepareCoded("W4A4 NVFP4", Read, layers, tensors, options, context);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA16(std::span<const LinearLayer> layers,
                                                   std::span<const LayerViews> tensors,
                                                   const PrepareOptions& options,
                                                   const Context& context) {
  return PrepareCoded("W4A16 NVFP4", Read, layers, tensors, options, context);
}

constexpr std::string_view kA4Examples[] = {"NVFP4"};
constexpr std::string_view kA16Examples[] = {"NVFP4A16"};

}  // namespace

extern const Scheme kW4A4Nvfp4;
const Scheme kW4A4Nvfp4 = {
    .name = "W4A4 NVFP4",
    .examples = kA4Examples,
    .differences = DifferencesA4,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = PackInputScales,
    .stacks = SameInputScales,
    .prepare = PrepareA4,
    .dequantize = DequantizeLayer,
};

extern const Scheme kW4A16Nvfp4;
const Scheme kW4A16Nvfp4 = {
    .name = "W4A16 NVFP4",
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
