// GPT-2's alphabet: a visible character for each byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

// The 188 visible characters of Latin-1 stand for their own byte, the other bytes, in order, for
// U+0100, U+0101 ...: the space is U+0120, newline U+010A.
char32_t ByteLevelCharacter(uint8_t byte);
// The byte of that character, or -1.
int ByteLevelByte(char32_t character);

}  // namespace octavo
