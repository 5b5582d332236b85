// Llama: RMSNorm, grouped-query attention with split-half rotary embedding, SwiGLU.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config));
  spec.architecture = "LlamaForCausalLM";
  OCTAVO_ASSIGN_OR_RETURN(spec.qkv_bias, config.GetBool("attention_bias", false));
  spec.attention_output_bias = spec.qkv_bias;
  OCTAVO_ASSIGN_OR_RETURN(spec.mlp_bias, config.GetBool("mlp_bias", false));
  return spec;
}

}  // namespace

extern const Architecture kLlama;
const Architecture kLlama = {
    .class_names = {"LlamaForCausalLM"}, .parse_config = ParseConfig, .module_names = LlamaNames};

}  // namespace octavo
