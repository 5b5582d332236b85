// Tokens to tree: Jinja's grammar with the tags that transformers enables.
#pragma once

#include <string_view>

#include "base/status.h"
#include "text/jinja/ast.h"

namespace octavo::jinja {

// CorruptFile ("line 3: {% for %}: expected ...") for syntax errors, unknown tags, and unknown
// filters and tests outside of {% if %}; Unsupported for what Jinja knows and we do not.
Result<ParsedTemplate> Parse(std::string_view source);

}  // namespace octavo::jinja
