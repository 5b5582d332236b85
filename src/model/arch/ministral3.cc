// Ministral 3: Llama's block; queries grow with their position.
#include <algorithm>

#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadCommonConfig(config, {.max_position_embeddings = 262144,
                                                    .head_dim = 128,
                                                    .norm_epsilon = 1e-5,
                                                    .rope_theta = 1000000}));
  spec.architecture = "Ministral3ForCausalLM";
  const Value* rope = config.Find("rope_parameters");
  if (rope != nullptr && rope->Find("llama_4_scaling_beta") != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(spec.query_growth, ReadFactor(*rope, "llama_4_scaling_beta", 1));
    spec.query_growth_positions = std::max<int64_t>(1, spec.rope.trained_positions);
  }
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, std::nullopt));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [](int64_t) { return true; }, &spec));
  return spec;
}

}  // namespace

extern const Architecture kMinistral3;
const Architecture kMinistral3 = {.class_names = {"Ministral3ForCausalLM"},
                                  .summary = "queries grow with their position",
                                  .parse_config = ParseConfig,
                                  .module_names = LlamaNames};

}  // namespace octavo
