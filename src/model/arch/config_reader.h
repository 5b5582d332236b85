// What the config.json of every family has in common, in both spellings (transformers 4 and 5).
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "base/value.h"
#include "model/spec.h"

namespace octavo {

// What a family assumes of keys that a config does not have.
struct ConfigDefaults {
  int64_t max_position_embeddings = 2048;
  std::optional<int64_t> head_dim = {};  // nullopt: hidden_size / num_attention_heads
};

// Sizes, norm epsilon, rotary embedding, tying and dtype. Sizes are checked: positive, bounded, and
// consistent with each other. InvalidArgument names the key; Unsupported a rope type or activation
// that is not there yet.
Result<ModelSpec> ReadCommonConfig(const Value& config, const ConfigDefaults& defaults = {});

// Sets spec->windows: the layers that "layer_types" calls sliding, or without such a list those
// from `first_sliding` on, see `window` tokens. nullopt: no layer may slide. InvalidArgument or
// Unsupported names the key.
Status ReadWindows(const Value& config, std::optional<int64_t> window, int64_t first_sliding,
                   ModelSpec* spec);

// ReadWindows as the Qwen families spell it: "sliding_window" counts only with
// "use_sliding_window", and slides from layer "max_window_layers" on.
Status ReadQwenWindows(const Value& config, ModelSpec* spec);

}  // namespace octavo
