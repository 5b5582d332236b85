// Llama: RMSNorm, grouped-query attention with split-half rotary embedding, SwiGLU.
#include "model/arch/config_reader.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config));
  spec.architecture = "LlamaForCausalLM";
  OCTAVO_ASSIGN_OR_RETURN(spec.attention_bias, config.GetBool("attention_bias", false));
  OCTAVO_ASSIGN_OR_RETURN(spec.mlp_bias, config.GetBool("mlp_bias", false));
  return spec;
}

ModuleNames Names(const ModelSpec&) {
  return {.embedding = "model.embed_tokens",
          .blocks = "model.layers",
          .final_norm = "model.norm",
          .head = "lm_head",
          .attention_norm = "input_layernorm",
          .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
          .attention_output = "self_attn.o_proj",
          .mlp_norm = "post_attention_layernorm",
          .gate_up = {"mlp.gate_proj", "mlp.up_proj"},
          .down = "mlp.down_proj",
          .ignored_suffixes = {"rotary_emb.inv_freq"}};
}

}  // namespace

extern const Architecture kLlama;
const Architecture kLlama = {
    .class_names = {"LlamaForCausalLM"}, .parse_config = ParseConfig, .module_names = Names};

}  // namespace octavo
