#include "text/components/byte_level.h"

#include <array>

namespace octavo {
namespace {

constexpr bool IsVisible(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kNumHidden = 256 - 188;
constexpr char32_t kFirstHidden = 0x100;

constexpr std::array<char32_t, 256> MakeCharacters() {
  std::array<char32_t, 256> characters = {};
  char32_t next = kFirstHidden;
  for (int byte = 0; byte < 256; ++byte) {
    characters[static_cast<size_t>(byte)] = IsVisible(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return characters;
}
constexpr std::array<char32_t, 256> kCharacters = MakeCharacters();

constexpr std::array<int16_t, 256 + kNumHidden> MakeBytes() {
  std::array<int16_t, 256 + kNumHidden> bytes = {};
  for (int16_t& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[kCharacters[static_cast<size_t>(byte)]] = static_cast<int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<int16_t, 256 + kNumHidden> kBytes = MakeBytes();

}  // namespace

char32_t ByteLevelCharacter(uint8_t byte) {
  return kCharacters[byte];
}

int ByteLevelByte(char32_t character) {
  return character < kBytes.size() ? kBytes[character] : -1;
}

}  // namespace octavo
