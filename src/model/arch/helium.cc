// Helium: Llama's block with neighbouring rotary pairs.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, {.max_position_embeddings = 4096,
                                                                    .head_dim = 128,
                                                                    .norm_epsilon = 1e-8,
                                                                    .rope_theta = 100000}));
  spec.architecture = "HeliumForCausalLM";
  spec.rope_pairs = RopePairs::kNeighbours;
  OCTAVO_RETURN_IF_ERROR(ReadBiases(config, &spec));
  spec.attention_output_bias = false;
  return spec;
}

}  // namespace

extern const Architecture kHelium;
const Architecture kHelium = {.class_names = {"HeliumForCausalLM"},
                              .summary = "neighbouring rotary pairs",
                              .parse_config = ParseConfig,
                              .module_names = LlamaNames};

}  // namespace octavo
