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

}  // namespace octavo
