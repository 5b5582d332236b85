#include "inspect/engines/declared_kind.h"

#include <algorithm>

namespace octavo {

bool IsInt(const QuantizationArgs& args) {
  return args.type == QuantizationType::kInt;
}

bool IsFloat(const QuantizationArgs& args) {
  return args.type == QuantizationType::kFloat;
}

bool IsStatic(const QuantizationArgs& args) {
  return args.dynamic == Dynamic::kFalse;
}

bool HasStrategy(const QuantizationArgs& args, std::initializer_list<Strategy> strategies) {
  return std::find(strategies.begin(), strategies.end(), args.strategy) != strategies.end();
}

bool IsNvfp4(const QuantizationArgs& args) {
  return IsFloat(args) && args.num_bits == 4 && args.strategy == Strategy::kTensorGroup &&
         args.group_size == 16 && args.symmetric;
}

bool IsMxfp4(const QuantizationArgs& args) {
  return IsFloat(args) && args.num_bits == 4 && args.strategy == Strategy::kGroup &&
         args.group_size == 32 && args.symmetric;
}

bool IsMxfp8(const QuantizationArgs& args) {
  return IsFloat(args) && args.num_bits == 8 && args.strategy == Strategy::kGroup &&
         args.group_size == 32 && args.symmetric && args.scale_dtype == "torch.uint8";
}

bool IsFp8Weight(const QuantizationArgs& args) {
  return IsFloat(args) && args.symmetric && IsStatic(args) &&
         HasStrategy(args, {Strategy::kTensor, Strategy::kChannel, Strategy::kBlock});
}

bool IsFp8Input(const QuantizationArgs& args) {
  if (!IsFloat(args)) return false;
  return !IsStatic(args) || (args.symmetric && args.strategy == Strategy::kTensor);
}

bool IsEightBitWeight(const QuantizationArgs& args) {
  return args.num_bits == 8 && args.symmetric && IsStatic(args) &&
         HasStrategy(args, {Strategy::kTensor, Strategy::kChannel});
}

bool IsEightBitStaticInput(const QuantizationArgs& args) {
  return args.num_bits == 8 && IsStatic(args) && args.strategy == Strategy::kTensor;
}

bool IsEightBitTokenInput(const QuantizationArgs& args) {
  return args.num_bits == 8 && !IsStatic(args) && args.strategy == Strategy::kToken;
}

bool IsActivationFormat(const std::string& format) {
  return format == "naive-quantized" || format == "int-quantized" || format == "float-quantized" ||
         format == "nvfp4-pack-quantized" || format == "mxfp4-pack-quantized";
}

std::string FormatOf(const QuantizationScheme& declared) {
  return declared.format.value_or(InferFormat(declared));
}

bool IsLookedUp(const Subject& subject) {
  return !subject.is_foreign && subject.declared->weights && subject.kind != ModuleKind::kEmbedding;
}

bool InputIs(const Subject& subject, ArgsTest test) {
  const auto& input = subject.declared->input_activations;
  return input && test(*input);
}

Condition InActivationFormat(const Subject& subject) {
  return {"the format is one of quantized activations",
          IsActivationFormat(FormatOf(*subject.declared))};
}

Conditions AskFp8Weights(const Subject& subject) {
  return {InActivationFormat(subject),
          {"weights are FP8 of a tensor, channels or blocks, symmetric",
           IsFp8Weight(*subject.declared->weights)}};
}

Conditions AskFp8(const Subject& subject) {
  Conditions conditions = AskFp8Weights(subject);
  conditions.push_back({"inputs are FP8", InputIs(subject, IsFp8Input)});
  return conditions;
}

Conditions AskStaticInt8(const Subject& subject) {
  return {InActivationFormat(subject),
          {"weights have 8 bits of a tensor or channels, symmetric",
           IsEightBitWeight(*subject.declared->weights)},
          {"inputs have 8 bits and a static scale", InputIs(subject, IsEightBitStaticInput)}};
}

Conditions AskDynamicInt8(const Subject& subject) {
  Conditions conditions = AskStaticInt8(subject);
  conditions.back() = {"inputs have 8 bits and dynamic scales of tokens",
                       InputIs(subject, IsEightBitTokenInput)};
  return conditions;
}

bool AllHold(const Conditions& conditions) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [](const Condition& condition) { return condition.holds; });
}

std::vector<std::string> Missing(const Conditions& conditions) {
  std::vector<std::string> missing;
  for (const Condition& condition : conditions) {
    if (!condition.holds) missing.emplace_back(condition.text);
  }
  return missing;
}

}  // namespace octavo
