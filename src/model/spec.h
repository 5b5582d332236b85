// ModelSpec: everything `forward` must know of a decoder, as plain sizes and switches read from
// config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/rope.h"
#include "tensor/dtype.h"

namespace octavo {

struct ModelSpec {
  std::string architecture;  // "LlamaForCausalLM"
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t max_positions = 0;  // how long a sequence may be, stretched by `rope`
  float norm_epsilon = 0;
  RopeSpec rope;
  // Of each layer: how many positions a token sees, its own with them; 0: all before it. Empty: 0
  // for all.
  std::vector<int64_t> windows;
  bool qk_norm = false;                // RMSNorm over each head of q and k, before the rotation
  bool qkv_bias = false;               // on q, k and v
  bool attention_output_bias = false;  // on o
  bool mlp_bias = false;               // on gate, up and down
  bool tie_word_embeddings = false;
  DType dtype = DType::kBF16;  // of the stored weights

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;

  int64_t q_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
  int64_t window(int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<size_t>(layer)];
  }
};

}  // namespace octavo
