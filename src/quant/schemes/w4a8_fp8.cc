// W4A8 FP8 and its kin: integer weights of 2 to 8 bits, E4M3 activations with a scale a token
// (inference-schemes 1.8, 2.8).
#include "quant/scheme.h"
#include "quant/schemes/input_rounding.h"
#include "quant/schemes/int_weight.h"

namespace octavo {

namespace {

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddIntWeightDifferences(declared, &differences);
  const auto& input = declared.input_activations;
  if (!input || input->type != QuantizationType::kFloat || input->num_bits != 8)
    differences.emplace_back("input activations are not float8");
  AddInputDifferences(input, &differences);
  if (declared.output_activations) differences.emplace_back("output activations are quantized");
  return differences;
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  return PrepareCoded("W4A8 FP8", ReadIntWeight, layers, tensors, options, context);
}

constexpr std::string_view kExamples[] = {"W4AFP8"};

}  // namespace

extern const Scheme kW4A8Fp8;
const Scheme kW4A8Fp8 = {
    .name = "W4A8 FP8",
    .examples = kExamples,
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
