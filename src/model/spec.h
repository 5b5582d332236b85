// ModelSpec: everything `forward` must know of a decoder, as plain sizes and switches read from
// config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/activate/activate.h"
#include "kernels/rope/rope.h"
#include "model/rope.h"
#include "tensor/dtype.h"

namespace octavo {

// What of queries and keys an RMSNorm of their own is taken over.
enum class QkNorm : uint8_t {
  kNone,
  kHeads,  // each head, [head_dim]: Qwen3, Gemma 3
  kRows,   // the whole row, [heads * head_dim]: OLMo 2
};

// Switches say who uses them; what is not named is as in Llama.
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

  // The block: x += norm?(attention(norm?(x))), x += norm?(mlp(norm?(x))).
  bool pre_norms = true;                      // not OLMo 2 and 3, EXAONE 4
  bool post_norms = false;                    // those, Gemma 2 and 3, GLM 4
  bool norm_adds_one = false;                 // weights are stored less one: Gemma
  float embedding_multiplier = 1;             // Gemma: sqrt(hidden_size), Granite
  float residual_multiplier = 1;              // of what is added to the stream: Granite
  float logits_multiplier = 1;                // Granite: 1 / logits_scaling
  float logits_soft_cap = 0;                  // c tanh(logit / c), 0: none; Gemma 2
  Activation activation = Activation::kSilu;  // of gate, times up

  // Attention.
  float attention_scale = 0;     // 0: 1 / sqrt(head_dim); Granite, Gemma 2 and 3
  float attention_soft_cap = 0;  // of scaled scores, as for logits; Gemma 2
  RopeSpec rope;
  std::optional<RopeSpec> window_rope;  // of layers with a window, if another: Gemma 3, OLMo 3
  std::vector<uint8_t> rotated;         // of each layer, whether it has rope; empty: all
                                        // (SmolLM3, EXAONE 4)
  int64_t rotary_dim = 0;               // the first so many of each head are rotated: GLM; or all
  RopePairs rope_pairs = RopePairs::kHalves;  // kNeighbours: GLM, Helium, ERNIE 4.5
  // Queries at position p are multiplied by 1 + beta ln(1 + floor(p / positions)): Ministral 3.
  float query_growth = 0;
  int64_t query_growth_positions = 1;
  // Of each layer: how many positions a token sees, its own with them; 0: all before it. Empty: 0
  // for all.
  std::vector<int64_t> windows;
  QkNorm qk_norm = QkNorm::kNone;
  bool qk_norm_after_rope = false;     // HunYuan
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
  bool is_rotated(int64_t layer) const {
    return rotated.empty() || rotated[static_cast<size_t>(layer)] != 0;
  }
  const RopeSpec& rope_of(int64_t layer) const {
    return window_rope && window(layer) > 0 ? *window_rope : rope;
  }
  bool depends_on_length() const {
    return rope.depends_on_length() || (window_rope && window_rope->depends_on_length());
  }
};

}  // namespace octavo
