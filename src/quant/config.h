// quantization_config of a checkpoint: read, resolved to layers, and written (checkpoint-format 1,
// 5).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "quant/args.h"

namespace octavo {

struct QuantizationConfig {
  // Name -> scheme, in the order of the file.
  std::vector<std::pair<std::string, QuantizationScheme>> config_groups;
  std::vector<std::string> ignore;
  std::string format = "fakequant";
  std::string quantization_status = "initialized";
  std::optional<QuantizationArgs> kv_cache_scheme;
  std::string version;
};

// Finds and parses the quantization config in a config.json (1.1, 1.2, 9). nullopt when the
// checkpoint has none. InvalidArgument or Unsupported names the key path and, for unknown keys of
// strict objects, the nearest known one.
Result<std::optional<QuantizationConfig>> FindQuantizationConfig(const Value& config_json);

// A module that may be quantized.
struct ModuleName {
  std::string_view name;        // "model.layers.0.mlp.down_proj"
  std::string_view class_name;  // "Linear", "Embedding", "LlamaAttention"
};

// Whether one target or ignore entry matches (5.1): "re:" regex from the start of the name, exact
// name, or class. InvalidArgument for a regex that does not compile or exceeds its limits.
Result<bool> MatchesPattern(std::string_view pattern, const ModuleName& module);

// The scheme of a module (5.2): ignore beats targets; exact name > regex > class; smallest pattern
// string breaks ties; of several groups with one target string the last wins. The scheme's format
// is resolved (3.2, before looking at tensors). nullopt: not quantized.
Result<std::optional<QuantizationScheme>> ResolveScheme(const QuantizationConfig& config,
                                                        const ModuleName& module);

// Patterns that matched none of the modules, for a warning.
struct UnmatchedPatterns {
  std::vector<std::string> targets;
  std::vector<std::string> ignore;
};
Result<UnmatchedPatterns> FindUnmatchedPatterns(const QuantizationConfig& config,
                                                const std::vector<ModuleName>& modules);

// The object that goes under "quantization_config" on save, every key the library writes, groups
// named group_0 ... in order.
Value ToValue(const QuantizationConfig& config);

}  // namespace octavo
