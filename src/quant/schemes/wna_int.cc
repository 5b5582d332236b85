// WNA8/WNA4 Int: integer weights of 2 to 8 bits, integer activations
// (inference-schemes 1.8, 2.5, 2.9).
#include <fmt/format.h>

#include "kernels/matmul_int4/kernels.h"
#include "kernels/matmul_int4/matmul_int4.h"
#include "quant/scheme.h"
#include "quant/schemes/common.h"
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

// Weights of at most four bits and dynamic symmetric activations, multiplied in integers.
class Int4Linear : public PreparedLinear {
 public:
  Int4Linear(std::string description, Int4Weights weights, std::vector<float> bias,
             const RowRounding& rounding)
      : description_(std::move(description)),
        weights_(std::move(weights)),
        bias_(std::move(bias)),
        rounding_(rounding) {}

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const override {
    rows->source = x;
    rows->codes.resize(static_cast<size_t>(x.m * x.k));
    rows->scales.resize(static_cast<size_t>(x.m * rounding_.groups(x.k)));
    RoundRowsToInt8(x.data, x.stride, x.m, x.k, rounding_, rows->codes.data(), rows->scales.data(),
                    context.isa, context.pool);
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    MultiplyInt4(weights_,
                 {.codes = rows.codes.data(),
                  .scales = rows.scales.data(),
                  .scales_of_groups = rounding_.group != 0,
                  .m = rows.source.m},
                 bias_, y, stride, context.pool);
  }

  std::string Describe() const override { return description_; }

  int64_t owned_bytes() const override {
    return weights_.owned_bytes() + static_cast<int64_t>(bias_.size() * sizeof(float));
  }

 private:
  std::string description_;
  Int4Weights weights_;
  std::vector<float> bias_;  // [n] or empty
  RowRounding rounding_;
};

constexpr std::string_view kName = "WNA Int";

bool HasDynamicSymmetricInput(const LinearLayer& layer) {
  const QuantizationArgs& input = *layer.quantization.input_activations;
  return input.dynamic == Dynamic::kTrue && input.symmetric;
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  const auto in_floats = [&] {
    return PrepareCoded(std::string(kName), ReadIntWeight, layers, tensors, options, context);
  };
  if (!HasDynamicSymmetricInput(layers[0])) return in_floats();
  OCTAVO_ASSIGN_OR_RETURN(const std::optional<RowRounding> rounding,
                          RoundingOfInput(layers[0], tensors[0], options.activation_rule));
  std::vector<CodedWeight> weights;
  std::vector<CodedMatrix> matrices;
  for (size_t i = 0; i < layers.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(CodedWeight weight, ReadIntWeight(layers[i], tensors[i]));
    // Sorted columns and groups that are no whole steps are rare.
    if (!weight.column_order.empty() || !Int4Weights::Takes(weight.matrix, rounding->group))
      return in_floats();
    matrices.push_back(weight.matrix);
    weights.push_back(std::move(weight));
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> bias, StackBiases(layers, tensors));
  Int4Weights packed = Int4Weights::Pack(matrices, rounding->group, context.isa, context.pool);
  const QuantizationScheme& declared = layers[0].quantization;
  std::string description =
      fmt::format("{}: {} weights, {}, {}", kName, TypeString(*declared.weights),
                  DescribeInput(declared.input_activations), packed.kernel().name);
  return std::unique_ptr<PreparedLinear>(std::make_unique<Int4Linear>(
      std::move(description), std::move(packed), std::move(bias), *rounding));
}

constexpr std::string_view kExamples[] = {"W4A8", "W4A4", "W2A8", "W6A8"};

}  // namespace

extern const Scheme kWnaInt;
const Scheme kWnaInt = {
    .name = "WNA Int",
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
