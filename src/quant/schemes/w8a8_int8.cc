// W8A8 INT8: int8 weights with a scale a channel or one for all, int8 activations with a scale a
// token or a calibrated one, with a zero point or without (inference-schemes 2.1).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/matmul_int8/kernels.h"
#include "kernels/matmul_int8/matmul_int8.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "quant/scheme.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_rounding.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// The int32 sum holds k products of a code less its zero point, up to 255, and a code, up to 128.
constexpr int64_t kMaxK = 65536;

// How the input becomes codes.
struct InputQuantization {
  std::optional<StaticInt8> fixed;  // static: the same for every row
  bool symmetric = true;
  ActivationRule rule = ActivationRule::kEngine;  // of dynamic symmetric scales
};

class W8A8Int8Linear : public PreparedLinear {
 public:
  W8A8Int8Linear(Int8Weights weights, std::vector<float> scales, std::vector<float> bias,
                 const InputQuantization& input)
      : weights_(std::move(weights)),
        scales_(std::move(scales)),
        bias_(std::move(bias)),
        input_(input) {}

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const override {
    rows->source = x;
    rows->codes.resize(static_cast<size_t>(x.m * x.k));
    rows->scales.resize(static_cast<size_t>(x.m));
    rows->zero_points.assign(static_cast<size_t>(input_.symmetric ? 0 : x.m),
                             input_.fixed ? input_.fixed->zero_point : 0);
    int8_t* codes = rows->codes.data();
    float* scales = rows->scales.data();
    if (input_.fixed) {
      QuantizeRowsInt8Static(x.data, x.stride, x.m, x.k, *input_.fixed, codes, scales, context.isa,
                             context.pool);
    } else if (input_.symmetric) {
      QuantizeRowsInt8(x.data, x.stride, x.m, x.k, input_.rule, codes, scales, context.isa,
                       context.pool);
    } else {
      QuantizeRowsInt8Asymmetric(x.data, x.stride, x.m, x.k, codes, scales,
                                 rows->zero_points.data(), context.isa, context.pool);
    }
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    const Int8Rows quantized{
        .codes = rows.codes.data(),
        .scales = rows.scales.data(),
        .zero_points = rows.zero_points.empty() ? nullptr : rows.zero_points.data(),
        .m = rows.source.m};
    MultiplyInt8(weights_, quantized, scales_, bias_, y, stride, context.pool);
  }

  std::string Describe() const override {
    std::string_view input =
        input_.symmetric ? "static activations" : "static asymmetric activations";
    if (!input_.fixed) {
      input = !input_.symmetric                        ? "asymmetric activations"
              : input_.rule == ActivationRule::kEngine ? "engine activation rule"
                                                       : "library activation rule";
    }
    return fmt::format("W8A8 INT8: int8 x int8, {}, {}", weights_.kernel().name, input);
  }

  int64_t owned_bytes() const override {
    return weights_.packed_bytes() +
           static_cast<int64_t>((scales_.size() + bias_.size()) * sizeof(float));
  }

 private:
  Int8Weights weights_;
  std::vector<float> scales_;  // [n]
  std::vector<float> bias_;    // [n] or empty
  InputQuantization input_;
};

std::string DynamicString(Dynamic dynamic) {
  return dynamic == Dynamic::kTrue ? "dynamic" : dynamic == Dynamic::kLocal ? "local" : "static";
}

// "static tensor".
std::string FormString(const QuantizationArgs& args) {
  return fmt::format("{} {}", DynamicString(args.dynamic), StrategyName(args.strategy));
}

// Type and form; `forms` are those that are computed.
void CompareArgs(std::string_view which, const std::optional<QuantizationArgs>& args,
                 const std::vector<std::string>& forms, std::vector<std::string>* differences) {
  if (!args) {
    differences->push_back(fmt::format("{} are not quantized", which));
    return;
  }
  AddDifference(fmt::format("{}: type", which), TypeString(*args), "int8", differences);
  const std::string form = FormString(*args);
  if (std::find(forms.begin(), forms.end(), form) == forms.end()) {
    differences->push_back(fmt::format("{}: {}, not {}", which, form, fmt::join(forms, " or ")));
  }
}

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  CompareArgs("weights", declared.weights, {"static channel", "static tensor"}, &differences);
  if (declared.weights && !declared.weights->symmetric) {
    differences.emplace_back("weights: asymmetric, not symmetric");
  }
  CompareArgs("input activations", declared.input_activations, {"dynamic token", "static tensor"},
              &differences);
  if (declared.output_activations) differences.emplace_back("output activations are quantized");
  // The naive family shares one layout; its names only announce what is inside
  // (checkpoint-format 3.4).
  if (declared.format && *declared.format != "int-quantized" &&
      *declared.format != "naive-quantized") {
    differences.push_back(fmt::format("format is {}, not int-quantized", *declared.format));
  }
  return differences;
}

bool HasStaticInput(const LinearLayer& layer) {
  return layer.quantization.input_activations->dynamic == Dynamic::kFalse;
}

bool HasSymmetricInput(const LinearLayer& layer) {
  return layer.quantization.input_activations->symmetric;
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  const DeclaredTensor scale = DeclareWeightScale(layer);
  std::vector<DeclaredTensor> tensors = {
      {.suffix = "weight", .dtypes = {DType::kI8}, .shapes = {{layer.n, layer.k}}},
      scale,
      // Old and frozen files store zeros for symmetric schemes too.
      {.suffix = "weight_zero_point",
       .dtypes = {DType::kI8},
       .shapes = scale.shapes,
       .optional = true},
      DeclareBias(layer)};
  DeclareInput(layer, &tensors);
  return tensors;
}

Result<LayerTensors> Pack(const LinearLayer& layer, QuantizedWeight weight) {
  LayerTensors tensors;
  OCTAVO_ASSIGN_OR_RETURN(
      tensors["weight_scale"],
      FromFloat(weight.scale.data<float>(), layer.model_dtype, weight.scale.shape()));
  tensors["weight"] = std::move(weight.codes);
  return tensors;
}

Status CheckZero(const LinearLayer& layer, const LayerViews& tensors, std::string_view suffix) {
  const auto zero_point = tensors.find(suffix);
  if (zero_point == tensors.end()) return OkStatus();
  const std::span<const int8_t> values = zero_point->second.data<int8_t>();
  if (std::all_of(values.begin(), values.end(), [](int8_t value) { return value == 0; }))
    return OkStatus();
  return InvalidArgument(
      fmt::format("{}.{} is not zero, but declared symmetric", layer.name, suffix));
}

// The scales as float32, shaped as the weight's grid of scales, checked together with the zero
// points that should not be there.
Result<Tensor> ReadScales(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(Tensor scales, ScalesAsFloat(layer, tensors.at("weight_scale")));
  OCTAVO_RETURN_IF_ERROR(CheckZero(layer, tensors, "weight_zero_point"));
  return scales;
}

Result<InputQuantization> ReadInput(const LinearLayer& layer, const LayerViews& tensors,
                                    ActivationRule rule) {
  InputQuantization input{.fixed = {}, .symmetric = HasSymmetricInput(layer), .rule = rule};
  if (!HasStaticInput(layer)) return input;
  StaticInt8& fixed = input.fixed.emplace();
  OCTAVO_RETURN_IF_ERROR(ToFloat(tensors.at("input_scale"), {&fixed.scale, 1}));
  if (!std::isfinite(fixed.scale) || fixed.scale <= 0) {
    return InvalidArgument(
        fmt::format("{}.input_scale is {}; it was never calibrated, or the checkpoint is damaged",
                    layer.name, fixed.scale));
  }
  if (input.symmetric) {
    OCTAVO_RETURN_IF_ERROR(CheckZero(layer, tensors, "input_zero_point"));
  } else {
    fixed.zero_point = tensors.at("input_zero_point").data<int8_t>()[0];
  }
  return input;
}

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& tensors) {
  QuantizedWeight weight;
  OCTAVO_ASSIGN_OR_RETURN(weight.scale, ReadScales(layer, tensors));
  weight.codes = Tensor::CopyOf(tensors.at("weight"));
  return weight;
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  if (layers[0].k > kMaxK) {
    return Unsupported(fmt::format("{}: {} inputs; the int32 sum of this scheme holds at most {}",
                                   layers[0].name, layers[0].k, kMaxK));
  }
  std::vector<TensorView> codes;
  std::vector<float> scales;
  for (size_t i = 0; i < layers.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(const Tensor layer_scales, ReadScales(layers[i], tensors[i]));
    const std::span<const float> values = layer_scales.data<float>();
    // One scale for the whole layer is that of each of its rows: nothing is requantized.
    for (int64_t row = 0; row < layers[i].n; ++row)
      scales.push_back(values[values.size() == 1 ? 0 : static_cast<size_t>(row)]);
    codes.push_back(tensors[i].at("weight"));
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> bias, StackBiases(layers, tensors));
  OCTAVO_ASSIGN_OR_RETURN(const InputQuantization input,
                          ReadInput(layers[0], tensors[0], options.activation_rule));
  return std::unique_ptr<PreparedLinear>(
      std::make_unique<W8A8Int8Linear>(Int8Weights::Pack(codes, context.isa, context.pool),
                                       std::move(scales), std::move(bias), input));
}

Result<Tensor> DequantizeLayer(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, Unpack(layer, tensors));
  return Dequantize(*layer.quantization.weights, weight);
}

constexpr std::string_view kExamples[] = {
    "W8A8",
    R"({"weights": {"num_bits": 8, "strategy": "channel"}, "input_activations": {"num_bits": 8, "strategy": "tensor", "symmetric": false}})",
    R"({"weights": {"num_bits": 8, "strategy": "tensor"}, "input_activations": {"num_bits": 8, "strategy": "token", "dynamic": true, "symmetric": false}})"};

}  // namespace

extern const Scheme kW8A8Int8;
const Scheme kW8A8Int8 = {
    .name = "W8A8 INT8",
    .examples = kExamples,
    .differences = Differences,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .pack_input = PackInputScales,
    // With static scales of their own, shards of a fused layer quantize the input each for itself.
    .stacks = SameInputScales,
    .prepare = Prepare,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
