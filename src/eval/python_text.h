// Text as Python's str changes it.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// str.replace: every occurrence, from the left, without overlap; `from` is not empty.
inline void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace octavo
