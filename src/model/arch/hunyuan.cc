// HunYuan dense: Llama's block; queries and keys are normed after they are rotated.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, {.norm_epsilon = 1e-5}));
  spec.architecture = "HunYuanDenseV1ForCausalLM";
  spec.qk_norm = QkNorm::kHeads;
  spec.qk_norm_after_rope = true;
  OCTAVO_RETURN_IF_ERROR(ReadBiases(config, &spec));
  return spec;
}

ModuleNames Names(const ModelSpec& spec) {
  ModuleNames names = LlamaNames(spec);
  names.q_norm = "self_attn.query_layernorm";
  names.k_norm = "self_attn.key_layernorm";
  return names;
}

}  // namespace

extern const Architecture kHunYuanDense;
const Architecture kHunYuanDense = {.class_names = {"HunYuanDenseV1ForCausalLM"},
                                    .summary = "norms of each head of q and k behind the rope",
                                    .parse_config = ParseConfig,
                                    .module_names = Names};

}  // namespace octavo
