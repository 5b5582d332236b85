// GLM 4 (9B, of 2024): half of each head is rotated, in neighbouring pairs; gate and up are one
// layer. GLM 4 (0414) has norms behind attention and MLP too.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadCommonConfig(config, {.max_position_embeddings = 131072,
                                                    .head_dim = 128,
                                                    .norm_epsilon = 1.5625e-7,
                                                    .partial_rotary_factor = 0.5}));
  const bool is_glm4 = config.Find("architectures")->as_array()[0] == Value("Glm4ForCausalLM");
  spec.architecture = is_glm4 ? "Glm4ForCausalLM" : "GlmForCausalLM";
  spec.post_norms = is_glm4;
  spec.rope_pairs = RopePairs::kNeighbours;
  OCTAVO_ASSIGN_OR_RETURN(spec.qkv_bias, config.GetBool("attention_bias", true));
  return spec;
}

ModuleNames Names(const ModelSpec& spec) {
  ModuleNames names = LlamaNames(spec);
  names.gate_up = {"mlp.gate_up_proj"};
  names.post_attention_norm = "post_self_attn_layernorm";
  names.post_mlp_norm = "post_mlp_layernorm";
  return names;
}

}  // namespace

extern const Architecture kGlm;
const Architecture kGlm = {
    .class_names = {"GlmForCausalLM", "Glm4ForCausalLM"},
    .summary =
        "a part of each head is rotated, in neighbouring pairs; gate and up are one layer; GLM 4 "
        "of 2025 has norms behind attention and MLP too",
    .parse_config = ParseConfig,
    .module_names = Names};

}  // namespace octavo
