// JSON text to Value and back: strict, bounded, and written as Python's json module writes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/value.h"

namespace octavo {

struct JsonLimits {
  int max_depth = 128;
  // A text of n bytes can hold at most about n/2 values, so memory stays in proportion to the text.
  int64_t max_bytes = int64_t{256} << 20;
};

// Parses one JSON text (RFC 8259, UTF-8). CorruptFile with byte position for: syntax errors,
// invalid UTF-8, duplicate keys, trailing text, too deep or too large; integers beyond int64 become
// doubles. `what` names the text in messages (a path).
Result<Value> ParseJson(std::string_view text, std::string_view what,
                        const JsonLimits& limits = {});

struct JsonStyle {
  int indent = -1;  // spaces a level; -1: one line, ", " and ": "
  bool sort_keys = false;
  bool ensure_ascii = false;  // \uXXXX for everything above 0x7F
};

// Python's json.dumps; bytes that are no UTF-8 become U+FFFD. Floats as repr (0.1, 1e-05, 1e+16,
// Infinity, NaN).
std::string WriteJson(const Value& value, const JsonStyle& style = {});

// A double as Python's repr prints it: the shortest digits that read back the same, "1.0", "1e-05",
// "inf", "nan".
std::string PythonFloat(double value);

// `text` as a JSON string with its quotes.
std::string JsonString(std::string_view text, bool ensure_ascii = false);

}  // namespace octavo
