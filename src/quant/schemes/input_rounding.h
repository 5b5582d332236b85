// The input of schemes that compute in floats: how it is rounded before it is multiplied, and the
// tensors that say so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/round_rows/round_rows.h"
#include "quant/scheme.h"

namespace octavo {

// Appends what keeps RoundingOfInput from doing what is declared for the input.
void AddInputDifferences(const std::optional<QuantizationArgs>& input,
                         std::vector<std::string>* differences);

// "int8", "float4".
std::string TypeString(const QuantizationArgs& args);

// The tensors of the input's quantization: input_scale (and input_zero_point) of static inputs,
// input_global_scale of NVFP4's; none of dynamic ones.
void DeclareInput(const LinearLayer& layer, std::vector<DeclaredTensor>* tensors);

// Of a declared input that AddInputDifferences has nothing against; nullopt: floats stay as they
// are. InvalidArgument names a scale that is not positive and finite.
Result<std::optional<RowRounding>> RoundingOfInput(const LinearLayer& layer,
                                                   const LayerViews& tensors, ActivationRule rule);

// Scheme::pack_input for what DeclareInput declares.
Result<LayerTensors> PackInputScales(const LinearLayer& layer, const ScaleAndZeroPoint& input);

// Scheme::stacks: whether both layers round their input alike.
bool SameInputScales(const LayerViews& a, const LayerViews& b);

// For PreparedLinear::Describe: "float8 per token", "floats".
std::string DescribeInput(const std::optional<QuantizationArgs>& input);

}  // namespace octavo
