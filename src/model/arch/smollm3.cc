// SmolLM3: Llama's block; some layers have no rotary embedding.
#include <fmt/format.h>

#include "model/arch/config_reader.h"
#include "model/arch/llama_names.h"
#include "model/architecture.h"

namespace octavo {

namespace {

// "no_rope_layers" has 1 where a layer is rotated; without it each "no_rope_layer_interval"-th is
// not.
Status ReadRotatedLayers(const Value& config, ModelSpec* spec) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t interval, config.GetInt("no_rope_layer_interval", 4));
  if (interval < 1) {
    return InvalidArgument(
        fmt::format("\"no_rope_layer_interval\" is {}, expected a positive number", interval));
  }
  const Value* listed = config.Find("no_rope_layers");
  const bool is_listed = listed != nullptr && !listed->is_null();
  if (is_listed && (!listed->is_array() || std::ssize(listed->as_array()) != spec->num_layers)) {
    return InvalidArgument(fmt::format(
        "\"no_rope_layers\" is expected to be a list of {} numbers, 0 or 1", spec->num_layers));
  }
  for (int64_t i = 0; i < spec->num_layers; ++i) {
    const bool rotated = is_listed ? listed->as_array()[static_cast<size_t>(i)] != Value(int64_t{0})
                                   : (i + 1) % interval != 0;
    spec->rotated.push_back(rotated ? 1 : 0);
  }
  return OkStatus();
}

Result<ModelSpec> ParseConfig(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(ModelSpec spec,
                          ReadCommonConfig(config, {.max_position_embeddings = 32768,
                                                    .rope_theta = 2000000,
                                                    .tie_word_embeddings = true}));
  spec.architecture = "SmolLM3ForCausalLM";
  OCTAVO_RETURN_IF_ERROR(ReadBiases(config, &spec));
  OCTAVO_RETURN_IF_ERROR(ReadRotatedLayers(config, &spec));
  OCTAVO_ASSIGN_OR_RETURN(const bool slides, config.GetBool("use_sliding_window", false));
  OCTAVO_ASSIGN_OR_RETURN(auto window, ReadSlidingWindow(config, std::nullopt));
  if (!slides) window.reset();
  OCTAVO_RETURN_IF_ERROR(ReadWindows(
      config, window, [&](int64_t layer) { return !spec.is_rotated(layer); }, &spec));
  return spec;
}

}  // namespace

extern const Architecture kSmolLm3;
const Architecture kSmolLm3 = {.class_names = {"SmolLM3ForCausalLM"},
                               .summary = "some layers have no rope",
                               .parse_config = ParseConfig,
                               .module_names = LlamaNames};

}  // namespace octavo
