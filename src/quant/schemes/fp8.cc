// FP8: E4M3 weights with a scale a tensor, a channel or a block; E4M3 activations with a calibrated
// scale, or one a token or a group (W8A8), or floats (W8A16) (inference-schemes 2.2, 2.3).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "quant/scheme.h"
#include "quant/schemes/coded_linear.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// The format of checkpoints of other tools, `quant_method` fp8: the same tensors, under our names
// or under theirs.
constexpr std::string_view kForeign = "fp8";
constexpr std::pair<const char*, const char*> kTheirNames[] = {{"weight_scale", "weight_scale_inv"},
                                                               {"input_scale", "activation_scale"}};

bool IsForeign(const LinearLayer& layer) {
  return layer.quantization.format == kForeign;
}

// Either name of each tensor that has two.
void DeclareTheirNames(std::vector<DeclaredTensor>* tensors) {
  for (const auto& [ours, theirs] : kTheirNames) {
    const auto declared =
        std::find_if(tensors->begin(), tensors->end(),
                     [ours = ours](const DeclaredTensor& tensor) { return tensor.suffix == ours; });
    if (declared == tensors->end()) continue;
    declared->optional = true;
    DeclaredTensor other = *declared;
    other.suffix = theirs;
    tensors->push_back(std::move(other));
  }
}

// The tensors under our names. NotFound when a needed one has neither name, InvalidArgument when it
// has both.
Result<LayerViews> OurNames(const LinearLayer& layer, LayerViews tensors) {
  if (!IsForeign(layer)) return tensors;
  const auto& input = layer.quantization.input_activations;
  const bool is_static = input && input->dynamic == Dynamic::kFalse;
  for (const auto& [ours, theirs] : kTheirNames) {
    const bool is_needed = is_static || ours != std::string_view("input_scale");
    const bool has_ours = tensors.contains(ours);
    auto entry = tensors.extract(theirs);
    if (has_ours && !entry.empty()) {
      return InvalidArgument(
          fmt::format("{} has both {} and {}, expected one of them", layer.name, ours, theirs));
    }
    if (is_needed && !has_ours && entry.empty()) {
      return NotFound(
          fmt::format("{}.{} is missing, or {} in its place", layer.name, ours, theirs));
    }
    if (entry.empty()) continue;
    entry.key() = ours;
    tensors.insert(std::move(entry));
  }
  return tensors;
}

Result<std::vector<LayerViews>> OurNames(std::span<const LinearLayer> layers,
                                         std::span<const LayerViews> tensors) {
  std::vector<LayerViews> renamed;
  for (size_t i = 0; i < layers.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(renamed.emplace_back(), OurNames(layers[i], tensors[i]));
  }
  return renamed;
}

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
  if (format != "float-quantized" && format != "naive-quantized" && format != kForeign) {
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
  if (IsForeign(layer)) DeclareTheirNames(&tensors);
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

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& found) {
  OCTAVO_ASSIGN_OR_RETURN(const LayerViews tensors, OurNames(layer, found));
  QuantizedWeight weight;
  OCTAVO_RETURN_IF_ERROR(CheckE4M3(layer, tensors.at("weight")));
  OCTAVO_ASSIGN_OR_RETURN(weight.scale, ScalesAsFloat(layer, tensors.at("weight_scale")));
  weight.codes = Tensor::CopyOf(tensors.at("weight"));
  return weight;
}

// The same tensors under our names, where they are not; float-quantized.
Result<ResavedLayer> Resave(const LinearLayer& layer, const LayerViews& found) {
  ResavedLayer resaved{.layer = layer, .tensors = {}};
  QuantizationScheme& quantization = resaved.layer.quantization;
  quantization.format.reset();
  quantization.format = InferFormat(quantization);
  FillDefaultObservers(&quantization);
  OCTAVO_RETURN_IF_ERROR(CheckE4M3(layer, found.at("weight")));
  OCTAVO_ASSIGN_OR_RETURN(const LayerViews tensors, OurNames(layer, found));
  for (const auto& [suffix, view] : tensors) {
    if (suffix == "bias") continue;
    TensorView stored = view;
    if (stored.shape.empty()) stored.shape = {1};
    resaved.tensors[suffix] = Tensor::CopyOf(stored);
  }
  return resaved;
}

Result<Tensor> DequantizeLayer(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, Unpack(layer, tensors));
  return Dequantize(*layer.quantization.weights, weight);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA8(std::span<const LinearLayer> layers,
                                                  std::span<const LayerViews> tensors,
                                                  const PrepareOptions& options,
                                                  const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<LayerViews> renamed, OurNames(layers, tensors));
  return PrepareCoded("W8A8 FP8", Read, layers, renamed, options, context);
}

Result<std::unique_ptr<PreparedLinear>> PrepareA16(std::span<const LinearLayer> layers,
                                                   std::span<const LayerViews> tensors,
                                                   const PrepareOptions& options,
                                                   const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<LayerViews> renamed, OurNames(layers, tensors));
  return PrepareCoded("W8A16 FP8", Read, layers, renamed, options, context);
}

constexpr std::string_view kA8Examples[] = {"FP8", "FP8_DYNAMIC", "FP8_BLOCK"};
constexpr std::string_view kA16Examples[] = {
    R"({"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}})"};

}  // namespace

extern const Scheme kW8A8Fp8;
const Scheme kW8A8Fp8 = {
    .name = "W8A8 FP8",
    .examples = kA8Examples,
    .differences = DifferencesA8,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = PackInputScales,
    .stacks = SameInputScales,
    .prepare = PrepareA8,
    .resave = Resave,
    .dequantize = DequantizeLayer,
};

extern const Scheme kW8A16Fp8;
const Scheme kW8A16Fp8 = {
    .name = "W8A16 FP8",
    .examples = kA16Examples,
    .differences = DifferencesA16,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = PrepareA16,
    .resave = Resave,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
