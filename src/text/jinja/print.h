// Values as text: Python's str and repr, and the tojson of transformers.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace octavo::jinja {

// str(value). Fails where Python prints an address (a function, a generator).
Result<std::string> ToText(Runtime& runtime, const Value& value);
Result<std::string> ToRepr(Runtime& runtime, const Value& value);
// repr of a string: quotes chosen and characters escaped as Python does.
std::string QuotePython(std::string_view text);

// The five characters of HTML escaped, as markupsafe does.
std::string EscapeHtml(std::string_view text);

struct JsonOptions {
  bool ensure_ascii = false;
  bool indented = false;
  std::string indent;  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

Result<std::string> ToJson(Runtime& runtime, const Value& value, const JsonOptions& options);

}  // namespace octavo::jinja
