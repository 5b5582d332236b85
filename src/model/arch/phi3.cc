// Phi-3 and Phi-4-mini: Llama's block; q, k and v are one layer, gate and up another.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, {.max_position_embeddings = 4096,
                                                                    .norm_epsilon = 1e-5,
                                                                    .partial_rotary_factor = 1}));
  spec.architecture = "Phi3ForCausalLM";
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, std::nullopt));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [](int64_t) { return true; }, &spec));
  return spec;
}

ModuleNames Names(const ModelSpec& spec) {
  ModuleNames names = LlamaNames(spec);
  names.qkv = {"self_attn.qkv_proj"};
  names.gate_up = {"mlp.gate_up_proj"};
  return names;
}

}  // namespace

extern const Architecture kPhi3;
const Architecture kPhi3 = {.class_names = {"Phi3ForCausalLM"},
                            .summary =
                                "q, k and v are one layer, gate and up another; longrope; a part "
                                "of each head may be rotated",
                            .parse_config = ParseConfig,
                            .module_names = Names};

}  // namespace octavo
