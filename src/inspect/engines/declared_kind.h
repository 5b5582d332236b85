// Tests of declared quantization that the engines' decision tables are made of (inference-schemes
// 1.3), typed where theirs are not only where it says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "inspect/engine.h"
#include "quant/args.h"

namespace octavo {

bool IsInt(const QuantizationArgs& args);
bool IsFloat(const QuantizationArgs& args);
bool IsStatic(const QuantizationArgs& args);
bool HasStrategy(const QuantizationArgs& args, std::initializer_list<Strategy> strategies);

bool IsNvfp4(const QuantizationArgs& args);
bool IsMxfp4(const QuantizationArgs& args);
bool IsMxfp8(const QuantizationArgs& args);

// W of rows 8 and 9: float, symmetric, static, tensor, channel or block.
bool IsFp8Weight(const QuantizationArgs& args);
// A of row 8, whatever its symmetry where it is dynamic.
bool IsFp8Input(const QuantizationArgs& args);
// W of rows 10 and 11; types are not tested there.
bool IsEightBitWeight(const QuantizationArgs& args);
bool IsEightBitStaticInput(const QuantizationArgs& args);
bool IsEightBitTokenInput(const QuantizationArgs& args);

// Formats with which engines read input_activations (inference-schemes 1.1).
bool IsActivationFormat(const std::string& format);

std::string FormatOf(const QuantizationScheme& declared);

// Whether the decision table is asked: a linear layer of ours that is quantized.
bool IsLookedUp(const Subject& subject);

// What a row of a decision table asks for, and whether it is so.
struct Condition {
  std::string_view text;  // "weights are NVFP4"
  bool holds = false;
};
using Conditions = std::vector<Condition>;

using ArgsTest = bool (*)(const QuantizationArgs& args);
bool InputIs(const Subject& subject, ArgsTest test);
Condition InActivationFormat(const Subject& subject);
// What the rows for FP8 and INT8 ask for, of weights that are quantized.
Conditions AskFp8Weights(const Subject& subject);
Conditions AskFp8(const Subject& subject);
Conditions AskStaticInt8(const Subject& subject);
Conditions AskDynamicInt8(const Subject& subject);

bool AllHold(const Conditions& conditions);
// The texts of those that do not.
std::vector<std::string> Missing(const Conditions& conditions);

}  // namespace octavo
