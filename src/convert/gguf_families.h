// The model families that are imported from GGUF, one record each.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

// Which parts of a model have a bias.
enum class GgufBias {
  kNone,
  kQkv,              // q, k and v, always
  kAttention,        // q, k, v and o together, where the file has them
  kAttentionAndMlp,  // the same; and gate, up and down together, where the file has them
};

struct GgufFamily {
  std::string_view architecture;  // general.architecture: the prefix of its metadata keys too
  std::string_view class_name;    // as Hugging Face calls it
  std::string_view model_type;
  bool windowed = false;  // attention reaches back only attention.sliding_window positions
  // llama.cpp's converter stores each head's rows of q and k so that rotary partners are neighbours
  // (2i, 2i + 1); Hugging Face has them half a head apart (i, i + d/2).
  bool paired_rotary = false;
  bool qk_norm = false;
  GgufBias bias = GgufBias::kNone;
  // config.json always states the head size; else only one that is not hidden size / heads.
  bool states_head_dim = false;
  // What config.json has in this family only.
  void (*add_config)(Value& config) = nullptr;
};

// By general.architecture, and whether it has a sliding window. Unsupported, naming what is
// imported, for any other.
Result<const GgufFamily*> FindGgufFamily(const Value& metadata);

}  // namespace octavo
