// W8A8 INT8: int8 weights with a scale a channel, int8 activations with a scale a token
// (inference-schemes 2.1).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/matmul_int8/kernels.h"
#include "kernels/matmul_int8/matmul_int8.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "quant/scheme.h"
#include "quant/schemes/common.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// The int32 sum of k products of codes up to 128 x 128, shifted by 128 where the kernel wants one
// side unsigned.
constexpr int64_t kMaxK = 65536;

class W8A8Int8Linear : public PreparedLinear {
 public:
  W8A8Int8Linear(Int8Weights weights, std::vector<float> scales, std::vector<float> bias,
                 ActivationRule rule)
      : weights_(std::move(weights)),
        scales_(std::move(scales)),
        bias_(std::move(bias)),
        rule_(rule) {}

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const override {
    rows->source = x;
    rows->codes.resize(static_cast<size_t>(x.m * x.k));
    rows->scales.resize(static_cast<size_t>(x.m));
    QuantizeRowsInt8(x.data, x.stride, x.m, x.k, rule_, rows->codes.data(), rows->scales.data(),
                     context.isa, context.pool);
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    const Int8Rows quantized{
        .codes = rows.codes.data(), .scales = rows.scales.data(), .m = rows.source.m};
    MultiplyInt8(weights_, quantized, scales_, bias_, y, stride, context.pool);
  }

  std::string Describe() const override {
    return fmt::format("W8A8 INT8: int8 x int8, {}, {} activation rule", weights_.kernel().name,
                       rule_ == ActivationRule::kEngine ? "engine" : "library");
  }

  int64_t owned_bytes() const override {
    return weights_.packed_bytes() +
           static_cast<int64_t>((scales_.size() + bias_.size()) * sizeof(float));
  }

 private:
  Int8Weights weights_;
  std::vector<float> scales_;  // [n]
  std::vector<float> bias_;    // [n] or empty
  ActivationRule rule_;
};

std::string TypeString(const QuantizationArgs& args) {
  return fmt::format("{}{}", args.type == QuantizationType::kInt ? "int" : "float", args.num_bits);
}

std::string DynamicString(Dynamic dynamic) {
  return dynamic == Dynamic::kTrue ? "dynamic" : dynamic == Dynamic::kLocal ? "local" : "static";
}

void CompareArgs(std::string_view which, const std::optional<QuantizationArgs>& args,
                 Strategy strategy, std::string_view dynamic,
                 std::vector<std::string>* differences) {
  if (!args) {
    differences->push_back(fmt::format("{} are not quantized", which));
    return;
  }
  AddDifference(fmt::format("{}: type", which), TypeString(*args), "int8", differences);
  AddDifference(fmt::format("{}: strategy", which), StrategyName(args->strategy),
                StrategyName(strategy), differences);
  AddDifference(fmt::format("{}: range", which), DynamicString(args->dynamic), dynamic,
                differences);
  AddDifference(fmt::format("{}: symmetry", which), args->symmetric ? "symmetric" : "asymmetric",
                "symmetric", differences);
}

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  CompareArgs("weights", declared.weights, Strategy::kChannel, "static", &differences);
  CompareArgs("input activations", declared.input_activations, Strategy::kToken, "dynamic",
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

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  const Shape scale_shape = {layer.n, 1};
  return {{.suffix = "weight", .dtypes = {DType::kI8}, .shapes = {{layer.n, layer.k}}},
          {.suffix = "weight_scale",
           .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32},
           .shapes = {scale_shape, {layer.n}}},
          // Old and frozen files store zeros for symmetric schemes too.
          {.suffix = "weight_zero_point",
           .dtypes = {DType::kI8},
           .shapes = {scale_shape, {layer.n}},
           .optional = true},
          DeclareBias(layer)};
}

Result<LayerTensors> Pack(const LinearLayer& layer, QuantizedWeight weight) {
  LayerTensors tensors;
  OCTAVO_ASSIGN_OR_RETURN(
      tensors["weight_scale"],
      FromFloat(weight.scale.data<float>(), layer.model_dtype, weight.scale.shape()));
  tensors["weight"] = std::move(weight.codes);
  return tensors;
}

// The scales as float32 [n, 1], checked together with the zero points that should not be there.
Result<Tensor> ReadScales(const LinearLayer& layer, const LayerViews& tensors) {
  Tensor scales(DType::kF32, {layer.n, 1});
  OCTAVO_RETURN_IF_ERROR(ToFloat(tensors.at("weight_scale"), scales.mutable_data<float>()));
  for (float scale : scales.data<float>()) {
    if (!std::isfinite(scale)) {
      return InvalidArgument(
          fmt::format("{}.weight_scale holds {}; the checkpoint is damaged", layer.name, scale));
    }
  }
  if (const auto zero_point = tensors.find("weight_zero_point"); zero_point != tensors.end()) {
    const std::byte* bytes = zero_point->second.bytes;
    const bool zero =
        std::all_of(bytes, bytes + layer.n, [](std::byte b) { return b == std::byte{0}; });
    if (!zero) {
      return InvalidArgument(fmt::format(
          "{}.weight_zero_point is not zero, but the weights are declared symmetric", layer.name));
    }
  }
  return scales;
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
    scales.insert(scales.end(), values.begin(), values.end());
    codes.push_back(tensors[i].at("weight"));
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> bias, StackBiases(layers, tensors));
  return std::unique_ptr<PreparedLinear>(std::make_unique<W8A8Int8Linear>(
      Int8Weights::Pack(codes, context.isa, context.pool), std::move(scales), std::move(bias),
      options.activation_rule));
}

Result<Tensor> DequantizeLayer(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, Unpack(layer, tensors));
  return Dequantize(*layer.quantization.weights, weight);
}

}  // namespace

extern const Scheme kW8A8Int8;
const Scheme kW8A8Int8 = {
    .name = "W8A8 INT8",
    .differences = Differences,
    .declare = Declare,
    .pack = Pack,
    .unpack = Unpack,
    .prepare = Prepare,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
