// Scheme: how one kind of linear layer is recognised, stored, prepared and computed, as a record of
// functions by phase.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "kernels/quantize_rows/quantize_rows.h"
#include "quant/args.h"
#include "quant/quantize_weight.h"
#include "quant/row_transform.h"
#include "tensor/tensor.h"

namespace octavo {

// One linear layer as the checkpoint has it: y [m, n] = x [m, k] w^T + b.
struct LinearLayer {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  int64_t n = 0;
  int64_t k = 0;
  bool has_bias = false;
  DType model_dtype = DType::kBF16;  // of weights that are not quantized, biases and scales
  QuantizationScheme quantization;   // what is declared; no weights: dense
  // What is done to the input before it is quantized, and to the output, in this order.
  RowTransforms input_transforms = {};
  RowTransforms output_transforms = {};
};

// A tensor that a layer has in the checkpoint: `<layer>.<suffix>`.
struct DeclaredTensor {
  std::string suffix;         // "weight", "weight_scale", "bias"
  std::vector<DType> dtypes;  // any of these may be found; the first is written
  std::vector<Shape> shapes;  // likewise
  bool optional = false;
};

// Suffix -> tensor.
using LayerViews = std::map<std::string, TensorView, std::less<>>;
using LayerTensors = std::map<std::string, Tensor, std::less<>>;

// Rows of activations: m rows of k floats, `stride` floats apart.
struct Rows {
  const float* data = nullptr;
  int64_t m = 0;
  int64_t k = 0;
  int64_t stride = 0;
};

// Activations as a scheme wants them; buffers are kept from call to call.
struct QuantizedRows {
  Rows source;                       // what was quantized; schemes with float activations read it
  std::vector<float> transformed;    // [m, k]; `source` where the input is transformed first
  std::vector<int8_t> codes;         // [m, k]; integer schemes
  std::vector<float> values;         // [m, k]; others: the input as its codes read back
  std::vector<float> scales;         // [m], or [m, groups] where groups have their own
  std::vector<int32_t> zero_points;  // [m], or empty: all zero
};

// A layer, or several that share their input stacked along n (q/k/v, gate/up), ready to compute.
// Quantizing the rows and multiplying are two steps, so that what shares an input quantizes it
// once.
class PreparedLinear {
 public:
  virtual ~PreparedLinear() = default;
  virtual void QuantizeRows(const Rows& x, QuantizedRows* rows, const Context& context) const = 0;
  // y [m, n] with `stride` floats from row to row; n is the sum over the stacked layers.
  virtual void Multiply(const QuantizedRows& rows, float* y, int64_t stride,
                        const Context& context) const = 0;
  // The scheme and kernel that run, for logs and for the test that what is declared is what runs:
  // "W8A8 INT8: int8 x int8, avx512_vnni".
  virtual std::string Describe() const = 0;
  // Bytes held in memory by this layer alone (not those read from the mapped file).
  virtual int64_t owned_bytes() const = 0;
  // Whether it goes on reading its tensors where they lie in the mapped file.
  virtual bool reads_file() const { return false; }
};

// A weight [n, k] of which rows are looked up: a quantized embedding.
class RowTable {
 public:
  virtual ~RowTable() = default;
  // out [k] <- row `index`, float32.
  virtual void Read(int64_t index, float* out) const = 0;
  // Bytes held in memory by this table alone.
  virtual int64_t owned_bytes() const = 0;
};

struct PrepareOptions {
  ActivationRule activation_rule = ActivationRule::kEngine;
};

// A layer in the format that it is re-saved in: `layer` says what is declared for it then.
struct ResavedLayer {
  LinearLayer layer;
  LayerTensors tensors;
};

// One line of schemes.inc. A phase that a scheme does not have is null.
struct Scheme {
  std::string_view name;  // "W8A8 INT8"

  // What it computes, one of each form, for tests and benchmarks (ExampleOf). None of what is only
  // read.
  std::span<const std::string_view> examples = {};

  // What keeps the scheme from computing what is declared ("weights: strategy is group, not
  // channel"); empty when it does. The number of differences says how near it is, for the error
  // when no scheme matches.
  std::vector<std::string> (*differences)(const QuantizationScheme& declared);

  // The tensors a layer has on disk.
  std::vector<DeclaredTensor> (*declare)(const LinearLayer& layer);

  // Codes and scales to the tensors on disk, and back. Bias is not theirs. Null for dense.
  Result<LayerTensors> (*pack)(const LinearLayer& layer, QuantizedWeight weight);
  Result<QuantizedWeight> (*unpack)(const LinearLayer& layer, const LayerViews& tensors);
  // Where the input's quantization is static: its scale and zero point ([1] each, ComputeScales of
  // its range) to the tensors on disk, which `declare` lists. Null where no input is static.
  Result<LayerTensors> (*pack_input)(const LinearLayer& layer, const ScaleAndZeroPoint& input);
  // The same of outputs that are rounded too. Null where they are not.
  Result<LayerTensors> (*pack_output)(const LinearLayer& layer,
                                      const ScaleAndZeroPoint& output) = nullptr;

  // Whether two layers of the same declared quantization can run as one: whether their inputs are
  // quantized alike. Null: always.
  bool (*stacks)(const LayerViews& a, const LayerViews& b);

  // Builds what runs. layers[i] has tensors[i], checked against `declare`; all have the same k and
  // the same declared quantization, and stack; they are stacked in order. Views of float weights
  // may be kept (the checkpoint outlives the layer).
  Result<std::unique_ptr<PreparedLinear>> (*prepare)(std::span<const LinearLayer> layers,
                                                     std::span<const LayerViews> tensors,
                                                     const PrepareOptions& options,
                                                     const Context& context);

  // The weight of an embedding of n tokens, checked against `declare`. Null where rows of the
  // scheme cannot be looked up.
  Result<std::unique_ptr<RowTable>> (*prepare_table)(const LinearLayer& layer,
                                                     const LayerViews& tensors,
                                                     const Context& context) = nullptr;

  // Of the formats of other tools: the layer as compressed-tensors stores it, without bias. Null
  // for schemes that no other tool's checkpoint has.
  Result<ResavedLayer> (*resave)(const LinearLayer& layer, const LayerViews& tensors) = nullptr;

  // The weight as plain float32 [n, k]: the oracle that tests and debugging compare with.
  Result<Tensor> (*dequantize)(const LinearLayer& layer, const LayerViews& tensors);
};

// Every scheme, in the order of schemes.inc.
std::span<const Scheme* const> AllSchemes();

// What an entry of `examples` declares: the name of a preset, or a config group in JSON.
Result<QuantizationScheme> ExampleOf(std::string_view example);

// The first scheme that matches. Unsupported names the layer, its weight args, input args, format,
// and the nearest scheme with what differs; InvalidArgument a group size that does not divide the
// layer's columns, and one that would.
Result<const Scheme*> SelectScheme(const LinearLayer& layer);

// Checks found tensors against `declare`: missing, of another dtype or shape (both named with what
// was expected), or unknown.
Status CheckDeclared(const Scheme& scheme, const LinearLayer& layer, const LayerViews& tensors);

}  // namespace octavo
