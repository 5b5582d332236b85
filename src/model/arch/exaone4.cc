// EXAONE 4: norms behind attention and MLP, and of each head; where some layers slide, the others
// have no rope.
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec, ReadCommonConfig(config, {.norm_epsilon = 1e-5}));
  spec.architecture = "Exaone4ForCausalLM";
  spec.pre_norms = false;
  spec.post_norms = true;
  spec.qk_norm = QkNorm::kHeads;
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, 4096));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [](int64_t layer) { return (layer + 1) % 4 != 0; }, &spec));
  if (window) {
    for (int64_t i = 0; i < spec.num_layers; ++i)
      spec.rotated.push_back(spec.window(i) > 0 ? 1 : 0);
  }
  return spec;
}

}  // namespace

extern const Architecture kExaone4;
const Architecture kExaone4 = {.class_names = {"Exaone4ForCausalLM"},
                               .summary =
                                   "norms behind attention and MLP, of each head of q and k; where "
                                   "layers slide, the others have no rope",
                               .parse_config = ParseConfig,
                               .module_names = PostNormNames};

}  // namespace octavo
