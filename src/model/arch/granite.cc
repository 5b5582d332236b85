// Granite: Llama's block with multipliers on embedding, residual stream, scores and logits.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, {}));
  spec.architecture = "GraniteForCausalLM";
  OCTAVO_ASSIGN_OR_RETURN(spec.embedding_multiplier, ReadFactor(config, "embedding_multiplier", 1));
  OCTAVO_ASSIGN_OR_RETURN(spec.residual_multiplier, ReadFactor(config, "residual_multiplier", 1));
  OCTAVO_ASSIGN_OR_RETURN(spec.attention_scale, ReadFactor(config, "attention_multiplier", 1));
  OCTAVO_ASSIGN_OR_RETURN(const float logits_scaling, ReadFactor(config, "logits_scaling", 1));
  spec.logits_multiplier = 1 / logits_scaling;
  OCTAVO_RETURN_IF_ERROR(ReadBiases(config, &spec));
  return spec;
}

}  // namespace

extern const Architecture kGranite;
const Architecture kGranite = {
    .class_names = {"GraniteForCausalLM"},
    .summary = "multipliers of embedding, residual stream, scores and logits",
    .parse_config = ParseConfig,
    .module_names = LlamaNames};

}  // namespace octavo
