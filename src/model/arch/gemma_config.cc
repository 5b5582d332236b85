#include "model/arch/gemma_config.h"

#include <cmath>

#include "model/arch/llama_names.h"

namespace octavo {

Result<ModelSpec> ReadGemmaConfig(const Value& config, ConfigDefaults defaults) {
  defaults.head_dim = 256;
  defaults.tie_word_embeddings = true;
  defaults.activation = "gelu_pytorch_tanh";
  // Old files have "hidden_act" too, as "gelu", which was never meant.
  defaults.activation_key = "hidden_activation";
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, defaults));
  spec.norm_adds_one = true;
  spec.embedding_multiplier = static_cast<float>(std::sqrt(static_cast<double>(spec.hidden_size)));
  OCTAVO_ASSIGN_OR_RETURN(spec.qkv_bias, config.GetBool("attention_bias", false));
  spec.attention_output_bias = spec.qkv_bias;
  return spec;
}

ModuleNames GemmaNames(const ModelSpec& spec) {
  ModuleNames names = LlamaNames(spec);
  names.post_attention_norm = "post_attention_layernorm";
  names.mlp_norm = "pre_feedforward_layernorm";
  names.post_mlp_norm = "post_feedforward_layernorm";
  return names;
}

}  // namespace octavo
