// AWQ checkpoints of AutoAWQ, version gemm: integer weights of 4 bits, float activations.
//
//   qweight I32 [k, n / 8]       nibble i of a word is that of output kOrder[i] of its eight
//   qzeros  I32 [groups, n / 8]  likewise
//   scales  F16 [groups, n]
//
// w[j, i] = (code[i, j] - zero[g, j]) * scales[g, j], g = i / group size.
#include <array>

#include "quant/scheme.h"
#include "quant/schemes/input_major.h"

namespace octavo {

namespace {

constexpr int64_t kPerWord = 8;
constexpr std::array<int64_t, kPerWord> kOrder = {0, 2, 4, 6, 1, 3, 5, 7};

bool IsFormat(std::string_view format) {
  return format == "awq";
}

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddInputMajorDifferences(declared, IsFormat, &differences);
  return differences;
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  const int64_t words = (layer.n + kPerWord - 1) / kPerWord;
  std::vector<DeclaredTensor> tensors = {
      {.suffix = "qweight", .dtypes = {DType::kI32}, .shapes = {{layer.k, words}}},
      {.suffix = "qzeros", .dtypes = {DType::kI32}, .shapes = {{InputGroups(layer), words}}}};
  DeclareScalesAndBias(layer, &tensors);
  return tensors;
}

// I32 [rows, columns / 8] -> I8 [rows, columns], less 8.
Tensor UnpackInterleaved(const TensorView& words, int64_t columns) {
  const int64_t rows = words.shape[0];
  const int64_t width = words.shape[1];
  Tensor codes(DType::kI8, {rows, columns});
  int8_t* out = codes.mutable_data<int8_t>().data();
  // Of any alignment.
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.bytes);
  for (int64_t row = 0; row < rows; ++row, out += columns) {
    for (int64_t nibble = 0; nibble < width * kPerWord; ++nibble) {
      const int64_t column = nibble / kPerWord * kPerWord + kOrder[nibble % kPerWord];
      const uint8_t byte = bytes[row * width * 4 + nibble / 2];
      const int code = nibble % 2 == 0 ? byte & 0x0F : byte >> 4;
      if (column < columns) out[column] = static_cast<int8_t>(code - 8);
    }
  }
  return codes;
}

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& tensors) {
  const Tensor codes = UnpackInterleaved(tensors.at("qweight"), layer.n);
  const Tensor zero_points = UnpackInterleaved(tensors.at("qzeros"), layer.n);
  return FromInputMajor(layer, tensors, codes, zero_points);
}

Result<CodedWeight> Read(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(QuantizedWeight weight, Unpack(layer, tensors));
  return CodedFromIntegers(layer, std::move(weight));
}

Result<ResavedLayer> Resave(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(QuantizedWeight weight, Unpack(layer, tensors));
  return ResaveIntegers(layer, tensors.at("scales").dtype, std::move(weight));
}

Result<Tensor> DequantizeLayer(const LinearLayer& layer, const LayerViews& tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight weight, Unpack(layer, tensors));
  return Dequantize(*layer.quantization.weights, weight);
}

Result<std::unique_ptr<PreparedLinear>> Prepare(std::span<const LinearLayer> layers,
                                                std::span<const LayerViews> tensors,
                                                const PrepareOptions& options,
                                                const Context& context) {
  return PrepareCoded("AWQ", Read, layers, tensors, options, context);
}

}  // namespace

extern const Scheme kAwq;
const Scheme kAwq = {
    .name = "AWQ",
    .differences = Differences,
    .declare = Declare,
    .pack = nullptr,
    .unpack = Unpack,
    .pack_input = nullptr,
    .stacks = nullptr,
    .prepare = Prepare,
    .resave = Resave,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
