// WNA8/WNA4 Int: integer weights of 2 to 8 bits, integer activations
// (inference-schemes 1.8, 2.5, 2.9).
#include "quant/scheme.h"
#include "quant/schemes/input_rounding.h"
#include "quant/schemes/int_weight.h"

namespace octavo {

namespace {

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddIntWeightDifferences(declared, &differences);
  const auto& input = declared.input_activations;
  if (!input || input->type != QuantizationType::kInt)
    differences.emplace_back("input activations are not integers");
  AddInputDifferences(input, &differences);
  if (declared.output_activations) differences.emplace_back("output activations are quantized");
  return differences;
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  return PrepareCoded("WNA Int", ReadIntWeight, layers, tensors, options, context);
}

}  // namespace

extern const Scheme kWnaInt;
const Scheme kWnaInt = {
    .name = "WNA Int",
    .differences = Differences,
    .declare = DeclareIntWeight,
    .pack = PackIntWeight,
    .unpack = UnpackIntWeight,
    .pack_input = PackInputScales,
    .stacks = SameInputScales,
    .prepare = Prepare,
    .dequantize = DequantizeIntWeight,
};

}  // namespace octavo
