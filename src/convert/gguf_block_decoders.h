// The functions of gguf_blocks.inc, and how they read a block's fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/convert.h"

namespace octavo {

#define OCTAVO_GGUF_BLOCK(name, function) void function(const std::byte* block, float* out);
#include "convert/gguf_blocks.inc"
#undef OCTAVO_GGUF_BLOCK

constexpr int kSmallBlock = 32;   // elements of Q4_0, Q4_1 ...
constexpr int kSuperBlock = 256;  // elements of the K, IQ and TQ types

template <typename T>
T LoadField(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline int LoadByte(const std::byte* bytes, int index) {
  return std::to_integer<int>(bytes[index]);
}

inline float LoadF16(const std::byte* bytes) {
  return FloatFromF16(LoadField<uint16_t>(bytes));
}

// Number `index` of those stored two a byte, low half first: bytes 0 1 2 ... hold 0 1, 2 3, 4 5 ...
inline int Nibble(const std::byte* bytes, int index) {
  return LoadByte(bytes, index / 2) >> 4 * (index % 2) & 15;
}

// The code of element i of 2 n, where byte b holds elements b (low half) and b + n (high half).
inline int SplitNibble(const std::byte* bytes, int i, int n) {
  return LoadByte(bytes, i % n) >> 4 * (i / n) & 15;
}

// The 2-bit code of element i of a super-block: of each 128 elements, byte b of 32 holds
// b, b + 32, b + 64 and b + 96, lowest bits first.
inline int PlanarCrumb(const std::byte* bytes, int i) {
  return LoadByte(bytes, i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 3;
}

// The bit of element i of up to 256: bit i / 32 of byte i % 32.
inline int PlanarBit(const std::byte* bytes, int i) {
  return LoadByte(bytes, i % 32) >> i / 32 & 1;
}

}  // namespace octavo
