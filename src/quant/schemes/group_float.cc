#include "quant/schemes/group_float.h"

#include <fmt/format.h>

#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"

namespace octavo {

namespace {

void AddWeightDifferences(const GroupFloatForm& form, const QuantizationScheme& declared,
                          std::vector<std::string>* differences) {
  if (!declared.weights) {
    differences->emplace_back("weights are not quantized");
    return;
  }
  const QuantizationArgs& weights = *declared.weights;
  AddDifference("weights: type", TypeString(weights), form.type, differences);
  AddDifference("weights: strategy", StrategyName(weights.strategy), form.strategy, differences);
  AddDifference("weights: group size", fmt::to_string(weights.group_size.value_or(0)),
                fmt::to_string(form.group_size), differences);
  if (!form.scale_dtype.empty()) {
    AddDifference("weights: scale_dtype", weights.scale_dtype.value_or("not named"),
                  form.scale_dtype, differences);
  }
  if (!weights.symmetric) differences->emplace_back("weights: asymmetric, not symmetric");
  if (declared.output_activations) differences->emplace_back("output activations are quantized");
  AddDifference("format", declared.format.value_or(std::string(form.format)), form.format,
                differences);
}

}  // namespace

std::vector<std::string> DifferencesWithInput(const GroupFloatForm& form,
                                              const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddWeightDifferences(form, declared, &differences);
  const auto& input = declared.input_activations;
  if (!input) {
    differences.emplace_back("input activations are not quantized");
    return differences;
  }
  AddDifference("input activations: type", TypeString(*input), form.type, &differences);
  AddDifference("input activations: strategy", StrategyName(input->strategy), form.strategy,
                &differences);
  AddInputDifferences(input, &differences);
  return differences;
}

std::vector<std::string> DifferencesWithoutInput(const GroupFloatForm& form,
                                                 const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddWeightDifferences(form, declared, &differences);
  if (declared.input_activations) differences.emplace_back("input activations are quantized");
  return differences;
}

}  // namespace octavo
