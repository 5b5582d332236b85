// The nearest known name, for "did you mean" in error messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace octavo {

// The first candidate that begins with `name` (three letters at least), else the one with the least
// edit distance; "" when none is near: more than two letters and more than a third of them differ,
// or all.
std::string NearestName(std::string_view name, std::span<const std::string> candidates);

// " (did you mean \"x\"?)", or "" when none is near: to be appended to a message.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace octavo
