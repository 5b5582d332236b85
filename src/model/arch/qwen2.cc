// Qwen2 and Qwen2.5: Llama's block with biases on q, k and v; the layers behind the first ones may
// slide.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadCommonConfig(config, {.max_position_embeddings = 32768}));
  spec.architecture = "Qwen2ForCausalLM";
  spec.qkv_bias = true;
  OCTAVO_RETURN_IF_ERROR(ReadQwenWindows(config, &spec));
  return spec;
}

}  // namespace

extern const Architecture kQwen2;
const Architecture kQwen2 = {.class_names = {"Qwen2ForCausalLM"},
                             .summary = "biases on q, k and v",
                             .parse_config = ParseConfig,
                             .module_names = LlamaNames};

}  // namespace octavo
