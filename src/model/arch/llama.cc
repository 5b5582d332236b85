// Llama: RMSNorm, grouped-query attention with split-half rotary embedding, SwiGLU.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config));
  spec.architecture = "LlamaForCausalLM";
  OCTAVO_RETURN_IF_ERROR(ReadBiases(config, &spec));
  return spec;
}

}  // namespace

extern const Architecture kLlama;
const Architecture kLlama = {.class_names = {"LlamaForCausalLM"},
                             .summary =
                                 "RMSNorm before attention and MLP, grouped-query attention, rope "
                                 "in halves, SwiGLU; biases by attention_bias and mlp_bias",
                             .parse_config = ParseConfig,
                             .module_names = LlamaNames};

}  // namespace octavo
