// quantization_config of a checkpoint: read, resolved to layers, and written (checkpoint-format 1,
// 5).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "quant/args.h"
#include "quant/pattern.h"

namespace octavo {

// The release of compressed-tensors whose format is written; readers choose old spellings by it.
inline constexpr std::string_view kFormatVersion = "0.19.0";

struct QuantizationConfig {
  // Name -> scheme, in the order of the file.
  std::vector<std::pair<std::string, QuantizationScheme>> config_groups;
  std::vector<std::string> ignore;
  std::string format = "fakequant";
  std::string quantization_status = "initialized";
  std::optional<QuantizationArgs> kv_cache_scheme;
  std::string version;
  // Another tool's ("gptq"), where the config was told by a foreign format; never written.
  std::string quant_method = "compressed-tensors";
  Value transform_config = Value::MakeObject();  // kept as it is; see ParseOnlineTransforms
};

// A quantization_config object; `where` names it in messages. InvalidArgument or Unsupported names
// the key path and, for unknown keys of strict objects, the nearest known one.
Result<QuantizationConfig> ParseQuantizationConfig(const Value& json, std::string_view where);

// Finds and parses the quantization config in a config.json (1.1, 1.2, 9), also of the tools that
// quant/foreign reads. nullopt when the checkpoint has none. Unsupported when the method is another
// one.
Result<std::optional<QuantizationConfig>> FindQuantizationConfig(const Value& config_json);

// The config's patterns, compiled once for all modules of a model. Keeps a copy of the config.
class SchemeResolver {
 public:
  // InvalidArgument for a regular expression that does not compile.
  static Result<SchemeResolver> Make(QuantizationConfig config);

  // The scheme of a module (5.2): ignore beats targets; exact name > regex > class; smallest
  // pattern string breaks ties; of several groups with one target string the last wins. The
  // scheme's format is resolved (3.2, before looking at tensors). nullopt: not quantized, which
  // all modules but linears, embeddings and attention are.
  Result<std::optional<QuantizationScheme>> Resolve(const ModuleName& module) const;

  // The scheme of modules that run as one (q/k/v, gate/up). InvalidArgument names the first two
  // that differ (5.4).
  Result<std::optional<QuantizationScheme>> ResolveFused(std::span<const ModuleName> shards) const;

  const QuantizationConfig& config() const { return config_; }

 private:
  friend Result<struct UnmatchedPatterns> FindUnmatchedPatterns(
      const QuantizationConfig& config, const std::vector<ModuleName>& modules);
  struct Target {
    ModulePattern pattern;
    size_t group;
  };
  explicit SchemeResolver(QuantizationConfig config) : config_(std::move(config)) {}

  QuantizationConfig config_;
  std::vector<ModulePattern> ignore_;
  std::vector<Target> targets_;  // sorted by pattern, each pattern once
};

// One pattern against one module, compiled for this call: for many, use ModulePattern.
Result<bool> MatchesPattern(std::string_view pattern, const ModuleName& module);

// SchemeResolver::Resolve for one module.
Result<std::optional<QuantizationScheme>> ResolveScheme(const QuantizationConfig& config,
                                                        const ModuleName& module);

// Patterns that matched none of the modules, for a warning.
struct UnmatchedPatterns {
  std::vector<std::string> targets;
  std::vector<std::string> ignore;
};
Result<UnmatchedPatterns> FindUnmatchedPatterns(const QuantizationConfig& config,
                                                const std::vector<ModuleName>& modules);

// The format of a group: its own, else the checkpoint's, else inferred (3.2).
std::string ResolveFormat(const QuantizationScheme& scheme, std::string_view checkpoint_format);

// The format of a whole checkpoint: the one that its groups have, "mixed-precision" for several,
// "dense" for none.
std::string CheckpointFormat(const QuantizationConfig& config);

// The object that goes under "quantization_config" on save, every key the library writes, groups
// named group_0 ... in order.
Value ToValue(const QuantizationConfig& config);

}  // namespace octavo
