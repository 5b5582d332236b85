// ERNIE 4.5: Llama's block with neighbouring rotary pairs.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadCommonConfig(config, {.max_position_embeddings = 131072,
                                                    .head_dim = 128,
                                                    .norm_epsilon = 1e-5,
                                                    .rope_theta = 500000,
                                                    .tie_word_embeddings = true}));
  spec.architecture = "Ernie4_5ForCausalLM";
  spec.rope_pairs = RopePairs::kNeighbours;
  OCTAVO_ASSIGN_OR_RETURN(spec.qkv_bias, config.GetBool("use_bias", false));
  spec.attention_output_bias = spec.qkv_bias;
  spec.mlp_bias = spec.qkv_bias;
  return spec;
}

}  // namespace

extern const Architecture kErnie45;
const Architecture kErnie45 = {.class_names = {"Ernie4_5ForCausalLM"},
                               .summary = "neighbouring rotary pairs; biases by use_bias",
                               .parse_config = ParseConfig,
                               .module_names = LlamaNames};

}  // namespace octavo
