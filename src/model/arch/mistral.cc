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
  std::optional<int64_t> window;
  const Value* given = config.Find("sliding_window");
  if (given == nullptr || !given->is_null()) {
    OCTAVO_ASSIGN_OR_RETURN(window, config.GetInt("sliding_window", kDefaultWindow));
  }
  OCTAVO_RETURN_IF_ERROR(ReadWindows(config, window, 0, &spec));
  return spec;
}

}  // namespace

extern const Architecture kMistral;
const Architecture kMistral = {.class_names = {"MistralForCausalLM", "MinistralForCausalLM"},
                               .parse_config = ParseConfig,
                               .module_names = LlamaNames};

}  // namespace octavo
