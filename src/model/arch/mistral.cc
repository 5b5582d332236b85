// Mistral: Llama's block, with a sliding window on every layer (Ministral: on some).
#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

// A config without the key means this; one with null, no window.
constexpr int64_t kDefaultWindow = 4096;

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadCommonConfig(config, {.max_position_embeddings = 131072}));
  spec.architecture = "MistralForCausalLM";
  OCTAVO_ASSIGN_OR_RETURN(const auto window, ReadSlidingWindow(config, kDefaultWindow));
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [](int64_t) { return true; }, &spec));
  return spec;
}

}  // namespace

extern const Architecture kMistral;
const Architecture kMistral = {.class_names = {"MistralForCausalLM", "MinistralForCausalLM"},
                               .summary = "a sliding window on all layers, or those of layer_types",
                               .parse_config = ParseConfig,
                               .module_names = LlamaNames};

}  // namespace octavo
