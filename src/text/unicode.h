// UTF-8 and the few Unicode properties that tokenizers ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace octavo {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// The length in bytes of the character that starts with this byte of valid UTF-8.
inline size_t Utf8Length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
inline bool IsUtf8Continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// The code point that starts at text[position]; the text is valid UTF-8.
char32_t DecodeUtf8(std::string_view text, size_t position);
void AppendUtf8(char32_t code_point, std::string& out);
int64_t CountCodePoints(std::string_view text);

// What the bytes at text[position] are: a character, the beginning of one that the text cuts off,
// or a mistake. `length` is that of the longest part that could begin a character (at least 1), the
// unit that becomes one U+FFFD (Unicode 15, section 3.9, "maximal subpart").
struct Utf8Unit {
  enum class Kind { kCharacter, kCutOff, kInvalid } kind;
  size_t length;
};
Utf8Unit ClassifyUtf8(std::string_view text, size_t position);

bool IsValidUtf8(std::string_view text);
// InvalidArgument with the position of the first bad byte.
Status CheckUtf8(std::string_view text);

// Each maximal part that is not UTF-8 becomes one U+FFFD.
std::string LossyUtf8(std::string_view bytes);

// White_Space of the Unicode database (Rust's char::is_whitespace, Oniguruma's \s).
bool IsWhiteSpace(char32_t code_point);
// General categories Nd, Nl and No.
bool IsNumeric(char32_t code_point);
// \w of Unicode regular expressions: letters, marks, decimal and letter numbers, connectors.
bool IsWordCharacter(char32_t code_point);

}  // namespace octavo
