// Gemma: Llama's block with norms stored less one, a scaled embedding and GeGLU.
#include "model/arch/gemma_config.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadGemmaConfig(config, {.max_position_embeddings = 8192}));
  spec.architecture = "GemmaForCausalLM";
  return spec;
}

}  // namespace

extern const Architecture kGemma;
const Architecture kGemma = {
    .class_names = {"GemmaForCausalLM"},
    .summary = "norms stored less one, embedding times sqrt(hidden_size), GeGLU, tied",
    .parse_config = ParseConfig,
    .module_names = LlamaNames};

}  // namespace octavo
