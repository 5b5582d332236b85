// The graph of a model: which linear layers it has, under which names, and how they share inputs;
// and, once loaded, their weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "model/architecture.h"
#include "model/spec.h"
#include "quant/config.h"
#include "quant/kv_cache.h"
#include "quant/scheme.h"
#include "tensor/tensor.h"

namespace octavo {

// Linear layers that read the same input (q/k/v; gate/up; one alone): their outputs lie side by
// side in one row.
struct LinearGroup {
  std::vector<LinearLayer> layers;

  // Filled by loading: each part computes consecutive layers of equal scheme stacked along n,
  // usually all of them in one.
  std::vector<std::unique_ptr<PreparedLinear>> parts;
  std::vector<int64_t> part_columns;  // where in the row a part's outputs begin

  int64_t n() const;  // outputs of all layers together
  int64_t k() const { return layers.front().k; }
};

// One decoder block.
struct Block {
  std::string name;            // "model.layers.3"
  std::string attention_norm;  // module names
  std::string mlp_norm;
  std::string q_norm;  // empty where the spec has no qk_norm
  std::string k_norm;
  std::string attention;  // "model.layers.3.self_attn"
  LinearGroup qkv;
  LinearGroup attention_output;
  LinearGroup gate_up;
  LinearGroup down;
  // How queries are declared to be rounded once they are rotated (its input_activations); and keys
  // and values, likewise.
  std::optional<QuantizationScheme> query_quantization;
  std::optional<QuantizationArgs> cache_quantization;

  // Filled when the model is opened (runtime/online.h).
  KvCodec cache;                    // floats: what the state's maker says
  std::vector<float> query_scales;  // [1] or [heads]; empty: queries stay floats
  RowTransforms query_transforms;   // of each head, rotated; before it is rounded
  RowTransforms key_transforms;

  // Filled by loading; empty tensors and parts otherwise.
  Tensor attention_norm_weight;  // F32 [hidden]
  Tensor mlp_norm_weight;
  Tensor q_norm_weight;  // F32 [head_dim]
  Tensor k_norm_weight;
  bool loaded = false;

  std::vector<LinearGroup*> groups() { return {&qkv, &attention_output, &gate_up, &down}; }
  std::vector<const LinearGroup*> groups() const {
    return {&qkv, &attention_output, &gate_up, &down};
  }
  // The norms there are: module name and where its weight goes.
  std::vector<std::pair<std::string, Tensor*>> norms();
};

struct Model {
  ModelSpec spec;
  ModuleNames names;
  std::vector<Block> blocks;
  std::string attention_class;  // "LlamaAttention", as configs name modules
  LinearGroup head;
  LinearLayer embedding_layer;     // its weight is [vocab, hidden]
  bool head_is_embedding = false;  // tied, and no tensor of its own in the checkpoint

  // Filled by loading.
  TensorView embedding;                       // [vocab, hidden] as stored, in the mapped file
  std::unique_ptr<RowTable> embedding_table;  // in its place, where the embedding is quantized
  Tensor final_norm_weight;                   // F32 [hidden]

  // Every module a recipe or config may name: linear layers (also the head), the embedding.
  std::vector<ModuleName> modules() const;
  // Those that a config may name besides.
  std::vector<ModuleName> attention_modules() const;
};

// Gives each block what the config declares for its attention and, by kv_cache_scheme, for its
// cache; the one goes for keys and values where the other is missing. What is not declared stays.
Status DeclareAttention(const QuantizationConfig& config, Model* model);

// Names, shapes and the declared quantization of every layer; no weights. `quantization` may be
// null.
Result<Model> BuildGraph(const Architecture& architecture, const ModelSpec& spec,
                         const QuantizationConfig* quantization);

}  // namespace octavo
