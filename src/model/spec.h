// ModelSpec: everything `forward` must know of a decoder, as plain sizes and switches read from
// config.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  int64_t max_positions = 0;  // max_position_embeddings
  float norm_epsilon = 0;
  double rope_theta = 0;
  bool attention_bias = false;  // on q, k, v and o
  bool mlp_bias = false;        // on gate, up and down
  bool tie_word_embeddings = false;
  DType dtype = DType::kBF16;  // of the stored weights

  int64_t q_size() const { return num_heads * head_dim; }
  int64_t kv_size() const { return num_kv_heads * head_dim; }
};

}  // namespace octavo
