// Qwen3: Llama's block with an RMSNorm over each head of q and k.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(
      ModelSpec spec,
      ReadCommonConfig(config, {.max_position_embeddings = 32768, .head_dim = 128}));
  spec.architecture = "Qwen3ForCausalLM";
  spec.qk_norm = QkNorm::kHeads;
  OCTAVO_ASSIGN_OR_RETURN(spec.qkv_bias, config.GetBool("attention_bias", false));
  spec.attention_output_bias = spec.qkv_bias;
  OCTAVO_RETURN_IF_ERROR(ReadQwenWindows(config, &spec));
  return spec;
}

}  // namespace

extern const Architecture kQwen3;
const Architecture kQwen3 = {.class_names = {"Qwen3ForCausalLM"},
                             .summary = "norms of each head of q and k",
                             .parse_config = ParseConfig,
                             .module_names = LlamaNames};

}  // namespace octavo
