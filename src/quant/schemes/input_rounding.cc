#include "quant/schemes/input_rounding.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tensor/convert.h"

namespace octavo {

namespace {

constexpr std::string_view kE8M0Scales = "torch.uint8";
constexpr int64_t kMxGroup = 32;
constexpr int64_t kNvGroup = 16;

bool IsStatic(const QuantizationArgs& args) {
  return args.dynamic == Dynamic::kFalse;
}

bool IsMx(const QuantizationArgs& args) {
  return args.type == QuantizationType::kFloat && args.strategy == Strategy::kGroup &&
         args.scale_dtype == kE8M0Scales && args.group_size == kMxGroup;
}

bool IsSupported(const QuantizationArgs& args) {
  if (args.type == QuantizationType::kInt) {
    if (args.num_bits > 8) return false;
    if (IsStatic(args)) return args.strategy == Strategy::kTensor;
    return args.dynamic == Dynamic::kTrue &&
           (args.strategy == Strategy::kToken || args.strategy == Strategy::kGroup);
  }
  if (!args.symmetric) return false;
  if (args.num_bits == 4) {
    const bool nvfp4 =
        HasGlobalScale(args) && args.group_size == kNvGroup && args.dynamic == Dynamic::kLocal;
    return nvfp4 || (IsMx(args) && args.dynamic == Dynamic::kTrue);
  }
  if (args.num_bits != 8) return false;
  if (IsStatic(args)) return args.strategy == Strategy::kTensor;
  // A scale for the whole of a dynamic input is one a token: what else is in the batch must not
  // matter.
  return args.dynamic == Dynamic::kTrue &&
         (args.strategy == Strategy::kToken || args.strategy == Strategy::kTensor ||
          args.strategy == Strategy::kGroup);
}

Result<float> ReadOne(const LinearLayer& layer, const LayerViews& tensors,
                      const std::string& suffix) {
  float value = 0;
  OCTAVO_RETURN_IF_ERROR(ToFloat(tensors.at(suffix), {&value, 1}));
  if (std::isfinite(value) && value > 0) return value;
  return InvalidArgument(
      fmt::format("{}.{} is {}; it was never calibrated, or the checkpoint is damaged", layer.name,
                  suffix, value));
}

RowScale DynamicScale(const QuantizationArgs& args, ActivationRule rule) {
  if (IsMx(args)) return RowScale::kPowerOfTwo;
  if (args.type == QuantizationType::kFloat) return RowScale::kLargest;
  if (!args.symmetric) return RowScale::kRange;
  return rule == ActivationRule::kLibrary ? RowScale::kHalfSpan : RowScale::kLargest;
}

}  // namespace

std::string TypeString(const QuantizationArgs& args) {
  return fmt::format("{}{}", args.type == QuantizationType::kInt ? "int" : "float", args.num_bits);
}

void AddInputDifferences(const std::optional<QuantizationArgs>& input,
                         std::vector<std::string>* differences) {
  if (input && !IsSupported(*input)) {
    differences->push_back(
        fmt::format("input activations: {} is none of the forms computed", input->ToString()));
  }
}

void DeclareInput(const LinearLayer& layer, std::vector<DeclaredTensor>* tensors) {
  const std::optional<QuantizationArgs>& input = layer.quantization.input_activations;
  if (!input) return;
  const std::vector<Shape> one = {{1}, {}};
  if (HasGlobalScale(*input)) {
    tensors->push_back({.suffix = "input_global_scale", .dtypes = {DType::kF32}, .shapes = one});
  } else if (IsStatic(*input)) {
    tensors->push_back({.suffix = "input_scale",
                        .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32},
                        .shapes = one});
    // Old and frozen files store zeros for symmetric schemes too.
    tensors->push_back(
        {.suffix = "input_zero_point",
         .dtypes = {input->type == QuantizationType::kInt ? DType::kI8 : DType::kF8E4M3},
         .shapes = one,
         .optional = input->symmetric});
  }
}

Result<std::optional<RowRounding>> RoundingOfInput(const LinearLayer& layer,
                                                   const LayerViews& tensors, ActivationRule rule) {
  const std::optional<QuantizationArgs>& input = layer.quantization.input_activations;
  if (!input) return std::optional<RowRounding>();
  const QuantizationArgs& args = *input;
  RowRounding rounding;
  rounding.to = args.type == QuantizationType::kInt ? RoundTo::kInt
                : args.num_bits == 8                ? RoundTo::kE4M3
                                                    : RoundTo::kE2M1;
  rounding.bits = args.num_bits;
  if (HasGlobalScale(args)) {
    rounding.scale_from = RowScale::kE4M3OfGlobal;
    rounding.group = kNvGroup;
    OCTAVO_ASSIGN_OR_RETURN(rounding.global, ReadOne(layer, tensors, "input_global_scale"));
  } else if (IsStatic(args)) {
    rounding.scale_from = RowScale::kFixed;
    OCTAVO_ASSIGN_OR_RETURN(rounding.scale, ReadOne(layer, tensors, "input_scale"));
    const auto zero_point = tensors.find("input_zero_point");
    if (!args.symmetric) rounding.zero_point = zero_point->second.data<int8_t>()[0];
  } else {
    rounding.scale_from = DynamicScale(args, rule);
    if (args.strategy == Strategy::kGroup) rounding.group = args.group_size.value_or(0);
  }
  return std::optional<RowRounding>(rounding);
}

Result<LayerTensors> PackInputScales(const LinearLayer& layer, const ScaleAndZeroPoint& input) {
  LayerTensors tensors;
  const std::optional<QuantizationArgs>& args = layer.quantization.input_activations;
  if (!args) return tensors;
  if (HasGlobalScale(*args)) {
    tensors["input_global_scale"] = input.scale.Clone();
  } else if (IsStatic(*args)) {
    OCTAVO_ASSIGN_OR_RETURN(tensors["input_scale"],
                            FromFloat(input.scale.data<float>(), layer.model_dtype, {1}));
    if (!args->symmetric) tensors["input_zero_point"] = input.zero_point.Clone();
  }
  return tensors;
}

bool SameInputScales(const LayerViews& a, const LayerViews& b) {
  for (const char* suffix :
       {"input_scale", "input_zero_point", "input_global_scale", "activation_scale"}) {
    const auto in_a = a.find(suffix);
    const auto in_b = b.find(suffix);
    if ((in_a == a.end()) != (in_b == b.end())) return false;
    if (in_a == a.end()) continue;
    if (in_a->second.dtype != in_b->second.dtype ||
        std::memcmp(in_a->second.bytes, in_b->second.bytes,
                    static_cast<size_t>(in_a->second.num_bytes())) != 0)
      return false;
  }
  return true;
}

std::string DescribeInput(const std::optional<QuantizationArgs>& input) {
  if (!input) return "float activations";
  const std::string group =
      input->group_size.value_or(0) > 0 ? fmt::format(" of {}", *input->group_size) : "";
  return fmt::format("{} activations, {} {}{}", TypeString(*input),
                     IsStatic(*input) ? "static" : "dynamic", StrategyName(input->strategy), group);
}

}  // namespace octavo
