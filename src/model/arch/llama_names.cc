#include "model/arch/llama_names.h"

namespace octavo {

ModuleNames LlamaNames(const ModelSpec&) {
  return {.embedding = "model.embed_tokens",
          .blocks = "model.layers",
          .final_norm = "model.norm",
          .head = "lm_head",
          .attention_norm = "input_layernorm",
          .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
          .q_norm = "self_attn.q_norm",
          .k_norm = "self_attn.k_norm",
          .attention_output = "self_attn.o_proj",
          .mlp_norm = "post_attention_layernorm",
          .gate_up = {"mlp.gate_proj", "mlp.up_proj"},
          .down = "mlp.down_proj",
          .ignored_suffixes = {"rotary_emb.inv_freq"}};
}

ModuleNames PostNormNames(const ModelSpec& spec) {
  ModuleNames names = LlamaNames(spec);
  names.post_attention_norm = "post_attention_layernorm";
  names.post_mlp_norm = "post_feedforward_layernorm";
  return names;
}

}  // namespace octavo
