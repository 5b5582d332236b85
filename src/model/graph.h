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
#include "model/norm.h"
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
  std::string name;     // "model.layers.3"
  Norm attention_norm;  // before attention and MLP
  Norm mlp_norm;
  Norm post_attention_norm;  // of what they add to the stream
  Norm post_mlp_norm;
  Norm q_norm;
  Norm k_norm;
  std::string attention;         // "model.layers.3.self_attn"
  std::string key_projection;    // "model.layers.3.self_attn.k_proj", though there may be no such
  std::string value_projection;  // layer
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

  bool loaded = false;  // weights are there

  std::vector<LinearGroup*> groups() { return {&qkv, &attention_output, &gate_up, &down}; }
  std::vector<const LinearGroup*> groups() const {
    return {&qkv, &attention_output, &gate_up, &down};
  }
  // The norms there are.
  std::vector<Norm*> norms();
  std::vector<const Norm*> norms() const;
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

// How the file names what attention keeps: of layers stored as one, k_proj and v_proj are those
// that older files of other families have.
AttentionShapeInFile AttentionInFile(const Block& block, const ModelSpec& spec);

// Gives each block what the config declares for its attention and, by kv_cache_scheme, for its
// cache; the one goes for keys and values where the other is missing. What is not declared stays.
Status DeclareAttention(const QuantizationConfig& config, Model* model);

// Names, shapes and the declared quantization of every layer; no weights. `quantization` may be
// null.
Result<Model> BuildGraph(const Architecture& architecture, const ModelSpec& spec,
                         const QuantizationConfig* quantization);

}  // namespace octavo
