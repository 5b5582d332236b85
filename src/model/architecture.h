// Architecture: how one family of Hugging Face models reads its config and names its tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "model/spec.h"

namespace octavo {

// Module names of a family. Those of a block follow `blocks` + ".<index>.".
struct ModuleNames {
  std::string embedding;         // "model.embed_tokens"
  std::string blocks;            // "model.layers"
  std::string final_norm;        // "model.norm"
  std::string head;              // "lm_head"
  std::string attention_norm;    // "input_layernorm"; used where the spec has pre_norms
  std::vector<std::string> qkv;  // "self_attn.q_proj", ...; one name: stored as one, in order
  std::string q_norm;            // "self_attn.q_norm"; used where the spec has qk_norm
  std::string k_norm;            // "self_attn.k_norm"
  std::string attention_output;  // "self_attn.o_proj"
  std::string post_attention_norm = {};  // used where the spec has post_norms
  std::string mlp_norm;                  // "post_attention_layernorm"
  std::vector<std::string> gate_up;      // "mlp.gate_proj", "mlp.up_proj"; or one, as for qkv
  std::string down;                      // "mlp.down_proj"
  std::string post_mlp_norm = {};
  // Tensors that checkpoints of the family carry and nobody needs: what their names end with.
  std::vector<std::string> ignored_suffixes;
};

// One line of archs.inc.
struct Architecture {
  std::vector<std::string> class_names;  // "architectures" of config.json
  std::string_view summary;              // of the block: what is not as in Llama's
  Result<ModelSpec> (*parse_config)(const Value& config);
  ModuleNames (*module_names)(const ModelSpec& spec);
};

// All of archs.inc.
std::span<const Architecture* const> Architectures();

// The architecture that config.json's "architectures" names. Unsupported lists what there is, and
// the nearest.
Result<const Architecture*> FindArchitecture(const Value& config);

}  // namespace octavo
