// WNA8O8: integer weights of 2 to 8 bits, inputs and outputs rounded to int8 by static scales
// (inference-schemes 2.5).
#include <fmt/format.h>

#include <algorithm>

#include "kernels/round_rows/round_rows.h"
#include "quant/scheme.h"
#include "quant/schemes/input_rounding.h"
#include "quant/schemes/int_weight.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

constexpr std::string_view kName = "WNA8O8";

bool IsStaticInt8(const std::optional<QuantizationArgs>& args) {
  return args && args->type == QuantizationType::kInt && args->num_bits == 8 && args->symmetric &&
         args->dynamic == Dynamic::kFalse && args->strategy == Strategy::kTensor;
}

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddIntWeightDifferences(declared, &differences);
  if (!IsStaticInt8(declared.input_activations))
    differences.emplace_back("input activations: not int8, static, symmetric, of strategy tensor");
  if (!declared.output_activations) {
    differences.emplace_back("output activations are not quantized");
  } else if (!IsStaticInt8(declared.output_activations)) {
    differences.push_back(
        fmt::format("output activations: {} is not int8, static, symmetric, of strategy tensor",
                    declared.output_activations->ToString()));
  }
  return differences;
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  std::vector<DeclaredTensor> tensors = DeclareIntWeight(layer);
  const std::vector<Shape> one = {{1}, {}};
  tensors.push_back({.suffix = "output_scale",
                     .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32},
                     .shapes = one});
  // Frozen files store zeros for symmetric schemes too.
  tensors.push_back(
      {.suffix = "output_zero_point", .dtypes = {DType::kI8}, .shapes = one, .optional = true});
  return tensors;
}

Result<LayerTensors> PackOutputScale(const LinearLayer& layer, const ScaleAndZeroPoint& output) {
  LayerTensors tensors;
  OCTAVO_ASSIGN_OR_RETURN(tensors["output_scale"],
                          FromFloat(output.scale.data<float>(), layer.model_dtype, {1}));
  return tensors;
}

// A scale of zero says that there was no data: nothing is rounded.
Result<bool> IsZero(const TensorView& scale) {
  float value = 0;
  OCTAVO_RETURN_IF_ERROR(ToFloat(scale, {&value, 1}));
  return value == 0;
}

// The output columns of one of the stacked layers.
struct OutputRange {
  int64_t n = 0;
  std::optional<RowRounding> rounding;
};

Result<OutputRange> ReadOutputRange(const LinearLayer& layer, const LayerViews& tensors) {
  OutputRange range{.n = layer.n, .rounding = std::nullopt};
  const TensorView& scale = tensors.at("output_scale");
  OCTAVO_ASSIGN_OR_RETURN(const bool is_zero, IsZero(scale));
  if (is_zero) return range;
  // What rounds an input rounds an output: the same question, asked of another tensor.
  LinearLayer as_input = layer;
  as_input.quantization.input_activations = layer.quantization.output_activations;
  LayerViews views;
  views["input_scale"] = scale;
  auto rounding = RoundingOfInput(as_input, views, ActivationRule::kEngine);
  if (!rounding.ok()) return rounding.status().Annotate("output_scale");
  range.rounding = *rounding;
  return range;
}

class OutputRoundedLinear : public PreparedLinear {
 public:
  OutputRoundedLinear(std::unique_ptr<PreparedLinear> linear, std::vector<OutputRange> outputs)
      : linear_(std::move(linear)), outputs_(std::move(outputs)) {}

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const override {
    linear_->QuantizeRows(x, rows, context);
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    linear_->Multiply(rows, y, stride, context);
    for (const OutputRange& output : outputs_) {
      if (output.rounding)
        RoundRowsInPlace(y, stride, rows.source.m, output.n, *output.rounding, context.isa,
                         context.pool);
      y += output.n;
    }
  }

  std::string Describe() const override {
    const bool all = std::all_of(outputs_.begin(), outputs_.end(),
                                 [](const OutputRange& output) { return output.rounding; });
    return linear_->Describe() +
           (all ? ", int8 outputs, static tensor" : ", some outputs never calibrated: floats");
  }

  int64_t owned_bytes() const override { return linear_->owned_bytes(); }
  bool reads_file() const override { return linear_->reads_file(); }

 private:
  std::unique_ptr<PreparedLinear> linear_;
  std::vector<OutputRange> outputs_;
};

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  std::vector<LinearLayer> weights_and_input(layers.begin(), layers.end());
  OCTAVO_ASSIGN_OR_RETURN(const bool no_input_scale, IsZero(tensors[0].at("input_scale")));
  if (no_input_scale) {
    for (LinearLayer& layer : weights_and_input) layer.quantization.input_activations.reset();
  }
  OCTAVO_ASSIGN_OR_RETURN(auto linear, PrepareCoded(std::string(kName), ReadIntWeight,
                                                    weights_and_input, tensors, options, context));
  std::vector<OutputRange> outputs;
  for (size_t i = 0; i < layers.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(OutputRange range, ReadOutputRange(layers[i], tensors[i]));
    outputs.push_back(range);
  }
  return std::unique_ptr<PreparedLinear>(
      std::make_unique<OutputRoundedLinear>(std::move(linear), std::move(outputs)));
}

constexpr std::string_view kExamples[] = {
    R"({"weights": {"num_bits": 4, "strategy": "channel"}, "input_activations": {"num_bits": 8, "strategy": "tensor"}, "output_activations": {"num_bits": 8, "strategy": "tensor"}})"};

}  // namespace

extern const Scheme kWna8O8;
const Scheme kWna8O8 = {
    .name = kName,
    .examples = kExamples,
    .differences = Differences,
    .declare = Declare,
    .pack = PackIntWeight,
    .unpack = UnpackIntWeight,
    .pack_input = PackInputScales,
    .pack_output = PackOutputScale,
    .stacks = SameInputScales,
    .prepare = Prepare,
    .dequantize = DequantizeIntWeight,
};

}  // namespace octavo
