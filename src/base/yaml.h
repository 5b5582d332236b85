// YAML text to Value: a bounded subset of what yaml-cpp accepts, resolved by the rules of YAML 1.1
// as PyYAML's safe loader has them.
#pragma once

#include <string>
#include <string_view>

#include "base/value.h"

namespace octavo {

struct YamlLimits {
  int max_depth = 64;
  int64_t max_nodes = 100'000;  // counted after aliases are expanded: no alias bomb
  int64_t max_bytes = int64_t{16} << 20;
};

// Parses one YAML document. Scalars become null, booleans, integers, floats or strings; quoted ones
// strings.
// "!!python/tuple" is read as a list (llm-compressor writes it); other tags outside YAML's own are
// refused. CorruptFile with line and column for syntax errors, duplicate keys, aliases that contain
// themselves, too many nodes or levels. `what` names the text in messages.
Result<Value> ParseYaml(std::string_view text, std::string_view what,
                        const YamlLimits& limits = {});

// Plain block style YAML, lists of scalars in flow style, as recipes are written.
std::string WriteYaml(const Value& value);

}  // namespace octavo
