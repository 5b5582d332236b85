// GPTQ checkpoints of AutoGPTQ and GPTQModel: integer weights of 2, 3, 4 or 8 bits, float
// activations.
//
//   qweight I32 [k * bits / 32, n]       each column a stream of bits, lowest first, in words
//   qzeros  I32 [groups, n * bits / 32]  each row likewise; format gptq: less one, gptq_v2: as is
//   scales  F16 [groups, n]
//   g_idx   I32 [k]                      the group of each input
//
// w[j, i] = (code[i, j] - zero[g, j]) * scales[g, j], g = g_idx[i].
#include <fmt/format.h>

#include <algorithm>

#include "quant/bit_packing.h"
#include "quant/scheme.h"
#include "quant/schemes/column_groups.h"
#include "quant/schemes/common.h"
#include "quant/schemes/input_major.h"

namespace octavo {

namespace {

int Bits(const LinearLayer& layer) {
  return layer.quantization.weights->num_bits;
}

bool IsFormat(std::string_view format) {
  return format == "gptq" || format == "gptq_v2";
}

std::vector<std::string> Differences(const QuantizationScheme& declared) {
  std::vector<std::string> differences;
  AddInputMajorDifferences(declared, IsFormat, &differences);
  return differences;
}

std::vector<DeclaredTensor> Declare(const LinearLayer& layer) {
  // Scattered groups cannot be told without g_idx.
  const bool is_ordered = layer.quantization.weights->actorder == ActOrder::kGroup;
  std::vector<DeclaredTensor> tensors = {
      {.suffix = "qweight",
       .dtypes = {DType::kI32},
       .shapes = {{PackedWords(layer.k, Bits(layer)), layer.n}}},
      {.suffix = "qzeros",
       .dtypes = {DType::kI32},
       .shapes = {{InputGroups(layer), PackedWords(layer.n, Bits(layer))}}},
      {.suffix = "g_idx", .dtypes = {DType::kI32}, .shapes = {{layer.k}}, .optional = !is_ordered}};
  DeclareScalesAndBias(layer, &tensors);
  return tensors;
}

// Zero points lie in the range of codes, so the one that was 0 is stored as the largest.
void AddOne(int bits, Tensor* zero_points) {
  const int half = 1 << (bits - 1);
  for (int8_t& zero : zero_points->mutable_data<int8_t>())
    zero = static_cast<int8_t>(zero + 1 == half ? -half : zero + 1);
}

Result<QuantizedWeight> Unpack(const LinearLayer& layer, const LayerViews& tensors) {
  const int bits = Bits(layer);
  auto codes = UnpackColumns(tensors.at("qweight"), layer.k, bits);
  if (!codes.ok()) return codes.status().Annotate(layer.name + ".qweight");
  auto zero_points = UnpackRows(tensors.at("qzeros"), layer.n, bits);
  if (!zero_points.ok()) return zero_points.status().Annotate(layer.name + ".qzeros");
  if (layer.quantization.format == "gptq") AddOne(bits, &*zero_points);
  OCTAVO_ASSIGN_OR_RETURN(QuantizedWeight weight,
                          FromInputMajor(layer, tensors, *codes, *zero_points));
  OCTAVO_ASSIGN_OR_RETURN(weight.group_of_column, ReadGroupOfColumn(layer, tensors, "g_idx"));
  return weight;
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
  return PrepareCoded("GPTQ", Read, layers, tensors, options, context);
}

// Layers of one input usually have one order, found from that input.
bool SameOrder(const LayerViews& a, const LayerViews& b) {
  const auto in_a = a.find("g_idx");
  const auto in_b = b.find("g_idx");
  if (in_a == a.end() || in_b == b.end()) return in_a == a.end() && in_b == b.end();
  const std::span<const int32_t> groups_a = in_a->second.data<int32_t>();
  const std::span<const int32_t> groups_b = in_b->second.data<int32_t>();
  return std::equal(groups_a.begin(), groups_a.end(), groups_b.begin(), groups_b.end());
}

}  // namespace

extern const Scheme kGptq;
const Scheme kGptq = {
    .name = "GPTQ",
    .differences = Differences,
    .declare = Declare,
    .pack = nullptr,
    .unpack = Unpack,
    .pack_input = nullptr,
    .stacks = SameOrder,
    .prepare = Prepare,
    .resave = Resave,
    .dequantize = DequantizeLayer,
};

}  // namespace octavo
