// Python's int("...") and float("...").
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::jinja {

// White space around, a sign, single underscores and the digits of any script are allowed, and a
// prefix that fits `base` (2..36). Nothing where Python raises ValueError or 64 bits do not hold
// it.
std::optional<int64_t> ParsePythonInt(std::string_view text, int base);
std::optional<double> ParsePythonFloat(std::string_view text);

}  // namespace octavo::jinja
