// OLMo 2 and 3: norms behind attention and MLP instead of before, and over whole rows of queries
// and keys.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseOlmo2(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, {.norm_epsilon = 1e-5}));
  spec.architecture = "Olmo2ForCausalLM";
  spec.pre_norms = false;
  spec.post_norms = true;
  spec.qk_norm = QkNorm::kRows;
  OCTAVO_RETURN_IF_ERROR(ReadBiases(config, &spec));
  spec.mlp_bias = false;
  return spec;
}

// Three of four layers slide, with a plain rope; the scaling is that of the others.
Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ParseOlmo2(config));
  const Value& classes = *config.Find("architectures");
  if (classes.as_array()[0] == Value("Olmo2ForCausalLM")) return spec;
  spec.architecture = "Olmo3ForCausalLM";
  if (!spec.window_rope) spec.window_rope = RopeSpec{.theta = 500000};
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, 4096));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [](int64_t layer) { return (layer + 1) % 4 != 0; }, &spec));
  return spec;
}

}  // namespace

extern const Architecture kOlmo2;
const Architecture kOlmo2 = {.class_names = {"Olmo2ForCausalLM", "Olmo3ForCausalLM"},
                             .summary =
                                 "norms behind attention and MLP, and over whole rows of q and k; "
                                 "OLMo 3 slides on three of four layers, which have a plain rope",
                             .parse_config = ParseConfig,
                             .module_names = PostNormNames};

}  // namespace octavo
