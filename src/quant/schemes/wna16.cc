// WNA16: integer weights of 2 to 8 bits, float activations (inference-schemes 2.4).
#include "quant/scheme.h"
#include "quant/schemes/input_rounding.h"
#include "quant/schemes/int_weight.h"

namespace octavo {

namespace {

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddIntWeightDifferences(declared, &differences);
  if (declared.input_activations) differences.emplace_back("input activations are quantized");
  if (declared.output_activations) differences.emplace_back("output activations are quantized");
  return differences;
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  return PrepareCoded("WNA16", ReadIntWeight, layers, tensors, options, context);
}

Result<std::unique_ptr<RowTable>> PrepareTable(const LinearLayer& layer, const LayerViews& tensors,
                                               const Context& context) {
  return PrepareCodedTable(ReadIntWeight, layer, tensors, context);
}

constexpr std::string_view kExamples[] = {"W4A16", "W4A16_ASYM", "W8A16", "W2A16",
                                          "W3A16", "W5A16",      "W6A16", "W7A16"};

}  // namespace

extern const Scheme kWna16;
const Scheme kWna16 = {
    .name = "WNA16",
    .examples = kExamples,
    .differences = Differences,
    .declare = DeclareIntWeight,
    .pack = PackIntWeight,
    .unpack = UnpackIntWeight,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = Prepare,
    .prepare_table = PrepareTable,
    .dequantize = DequantizeIntWeight,
};

}  // namespace octavo
