// What the config.json of every family has in common, in both spellings (transformers 4 and 5).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/status.h"
#include "base/value.h"
#include "model/spec.h"

namespace octavo {

// What a family assumes of keys that a config does not have.
struct ConfigDefaults {
  int64_t max_position_embeddings = 2048;
  std::optional<int64_t> head_dim = {};  // nullopt: hidden_size / num_attention_heads
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  // Of families that may rotate a part of each head; nullopt: the others.
  std::optional<double> partial_rotary_factor = {};
  bool tie_word_embeddings = false;
  const char* activation = "silu";
  const char* activation_key = "hidden_act";
};

// Sizes, norm epsilon, rotary embedding, activation, tying and dtype. Sizes are checked: positive,
// bounded, and consistent with each other. InvalidArgument names the key; Unsupported a rope type
// or activation that is not there yet.
Result<ModelSpec> ReadCommonConfig(const Value& config, const ConfigDefaults& defaults = {});

// A number that divides or multiplies something: finite, and not 0.
Result<float> ReadFactor(const Value& config, std::string_view key, double fallback);
// The cap of "..._softcapping": positive; 0, none, where it is null. `fallback` may be 0.
Result<float> ReadSoftCap(const Value& config, std::string_view key, double fallback);

// "attention_bias" of q, k, v and o, "mlp_bias" of gate, up and down: Llama's spelling.
Status ReadBiases(const Value& config, ModelSpec* spec);

// Whether a layer slides where a config has no "layer_types".
using SlidesByDefault = std::function<bool(int64_t layer)>;

// Sets spec->windows: the layers that "layer_types" calls sliding, or without such a list those
// that `slides` says, see `window` tokens. nullopt: no layer may slide. InvalidArgument or
// Unsupported names the key.
Status ReadWindows(const Value& config, std::optional<int64_t> window,
                   const SlidesByDefault& slides, ModelSpec* spec);
// "sliding_window", a number or null; `fallback` where there is no such key.
Result<std::optional<int64_t>> ReadSlidingWindow(const Value& config,
                                                 std::optional<int64_t> fallback);

// ReadWindows as the Qwen families spell it: "sliding_window" counts only with
// "use_sliding_window", and slides from layer "max_window_layers" on.
Status ReadQwenWindows(const Value& config, ModelSpec* spec);

}  // namespace octavo
