// Dense: weights as they are stored (F32, BF16, F16), float32 activations and sums.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/matmul_float/matmul_float.h"
#include "quant/scheme.h"
#include "quant/schemes/common.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Stacked layers keep their own matrices: nothing is copied, each fills its columns of y.
class DenseLinear : public PreparedLinear {
 public:
  struct Part {
    TensorView weight;  // [n, k], in the mapped file or in `owned`
    Tensor owned;       // a copy, only where the file's bytes cannot be read in place
  };

  DenseLinear(std::vector<Part> parts, std::vector<float> bias)
      : parts_(std::move(parts)), bias_(std::move(bias)) {}

  void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context&) const override {
    rows->source = x;
  }

  void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                const Context& context) const override {
    const Rows& x = rows.source;
    int64_t column = 0;
    for (const Part& part : parts_) {
      const int64_t n = part.weight.shape[0];
      std::span<const float> bias(bias_);
      if (!bias.empty()) bias = bias.subspan(static_cast<size_t>(column), static_cast<size_t>(n));
      MultiplyFloat(part.weight, bias, x.data, x.stride, x.m, y + column, stride, context.isa,
                    context.pool);
      column += n;
    }
  }

  std::string Describe() const override {
    return fmt::format("dense: f32 x {}", DTypeName(parts_.front().weight.dtype));
  }

  int64_t owned_bytes() const override {
    auto bytes = static_cast<int64_t>(bias_.size() * sizeof(float));
    for (const Part& part : parts_) bytes += part.owned.empty() ? 0 : part.owned.num_bytes();
    return bytes;
  }

  bool reads_file() const override { return true; }

 private:
  std::vector<Part> parts_;
  std::vector<float> bias_;
};

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  if (declared.weights) differences.emplace_back("weights are quantized");
  if (declared.input_activations) differences.emplace_back("input activations are quantized");
  if (declared.output_activations) differences.emplace_back("output activations are quantized");
  return differences;
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  return {{.suffix = "weight",
           .dtypes = {layer.model_dtype, DType::kBF16, DType::kF16, DType::kF32, DType::kF64},
           .shapes = {{layer.n, layer.k}}},
          DeclareBias(layer)};
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions&, const Context&) {
  std::vector<DenseLinear::Part> parts(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const TensorView& weight = tensors[i].at("weight");
    const bool aligned = reinterpret_cast<uintptr_t>(weight.bytes) %
                             static_cast<uintptr_t>(DTypeBytes(weight.dtype)) ==
                         0;
    if (weight.dtype == DType::kF64) {
      OCTAVO_ASSIGN_OR_RETURN(parts[i].owned, ToFloatTensor(weight));
    } else if (!aligned) {
      parts[i].owned = Tensor::CopyOf(weight);
    }
    parts[i].weight = parts[i].owned.empty() ? weight : parts[i].owned.view();
  }
  OCTAVO_ASSIGN_OR_RETURN(std::vector<float> bias, StackBiases(layers, tensors));
  return std::unique_ptr<PreparedLinear>(
      std::make_unique<DenseLinear>(std::move(parts), std::move(bias)));
}

Result<Tensor> DequantizeLayer(const LinearLayer&, const LayerViews& tensors) {
  return ToFloatTensor(tensors.at("weight"));
}

constexpr std::string_view kExamples[] = {"UNQUANTIZED"};

}  // namespace

extern const Scheme kDense;
const Scheme kDense = {
    .name = "dense",
    .examples = kExamples,
    .differences = Differences,
    .declare = Declare,
    .pack = nullptr,
    .unpack = nullptr,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = Prepare,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
