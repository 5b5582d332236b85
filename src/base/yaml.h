// YAML text to Value: a bounded subset of what yaml-cpp accepts, resolved by the rules of YAML 1.1
// as PyYAML's safe loader has them.
#pragma once

#include <string>
#include <string_view>

#include "base/value.h"

namespace octavo {

struct YamlLimits {
  int max_depth = 64;
  // Counted after aliases are expanded, long texts as several: no alias bomb.
  int64_t max_nodes = 100'000;
  // yaml-cpp may hold the tokens of a whole line, at about 100 times its bytes.
  int64_t max_bytes = int64_t{1} << 20;
};

// Parses one YAML document. Scalars become null, booleans, integers, floats or strings; quoted ones
// strings. "1e-5" is a number (PyYAML takes it for text); dates and "1:30" are strings. Keys become
// strings as JSON writes them. "!!python/tuple" is read as a list (llm-compressor writes it).
//
// CorruptFile with line and column for syntax errors, duplicate keys, keys that are lists or
// mappings, merge keys (<<), other tags than YAML's own for null, bool, int, float, str, seq and
// map, aliases that contain themselves, too many nodes or levels, a second document. `what` names
// the text in messages.
Result<Value> ParseYaml(std::string_view text, std::string_view what,
                        const YamlLimits& limits = {});

// Plain block style YAML, lists of scalars in flow style, as recipes are written.
std::string WriteYaml(const Value& value);

}  // namespace octavo
