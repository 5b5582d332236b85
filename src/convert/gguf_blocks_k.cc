// The K types: 256 elements, whose groups of 16 or 32 have scales of a few bits.
#include "convert/gguf_block_decoders.h"

namespace octavo {

// Q2_K, 84 bytes:  | 16 bytes: scale s (low half), minimum t (high half) of 16 elements |
//                  | 64 bytes of 2-bit codes | d: f16 | dmin: f16 |         x = d s q - dmin t
void DecodeQ2_K(const std::byte* block, float* out) {
  const float d = LoadF16(block + 80);
  const float dmin = LoadF16(block + 82);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int scale = LoadByte(block, i / 16);
    const float step = d * static_cast<float>(scale & 15);
    const float minimum = dmin * static_cast<float>(scale >> 4);
    out[i] = step * static_cast<float>(PlanarCrumb(block + 16, i)) - minimum;
  }
}

// Q3_K, 110 bytes:  | 32 bytes: bit 2 of the codes, inverted | 64 bytes: bits 0 and 1 |
//                   | 12 bytes: 16 scales of 6 bits | d: f16 |              x = d (s - 32) q
//
// The low halves of bytes 0..7 are bits 0..3 of scales 0..7, the high halves those of 8..15; byte
// 8 + j % 4 has bits 4 and 5 of scale j at bit 2 (j / 4). A code is -4..3.
void DecodeQ3_K(const std::byte* block, float* out) {
  const std::byte* scales = block + 96;
  const float d = LoadF16(block + 108);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int j = i / 16;
    const int low = LoadByte(scales, j % 8) >> 4 * (j / 8) & 15;
    const int high = LoadByte(scales, 8 + j % 4) >> 2 * (j / 4) & 3;
    const float step = d * static_cast<float>((low | high << 4) - 32);
    const int code = PlanarCrumb(block + 32, i) - (PlanarBit(block, i) == 1 ? 0 : 4);
    out[i] = step * static_cast<float>(code);
  }
}

namespace {

struct ScaleAndMinimum {
  int scale, minimum;
};

// Number j of the 8 scales and minima of Q4_K and Q5_K, 6 bits each in 12 bytes: bytes 0..3 begin
// scales 0..3 and bytes 4..7 minima 0..3; their two top bits are those of numbers 4..7, whose low
// four bits are in bytes 8..11 (scale in the low half).
ScaleAndMinimum SixBits(const std::byte* bytes, int j) {
  const int k = j % 4;
  if (j < 4) return {LoadByte(bytes, k) & 63, LoadByte(bytes, 4 + k) & 63};
  const int low = LoadByte(bytes, 8 + k);
  return {(low & 15) | (LoadByte(bytes, k) >> 6 << 4),
          low >> 4 | (LoadByte(bytes, 4 + k) >> 6 << 4)};
}

// Of each 64 elements byte b of 32 holds b (low half) and b + 32 (high half).
int PlanarNibble(const std::byte* bytes, int i) {
  return SplitNibble(bytes + i / 64 * 32, i % 64, 32);
}

}  // namespace

// Q4_K, 144 bytes:  | d: f16 | dmin: f16 | 12 bytes: scales s and minima t of 32 elements |
//                   | 128 bytes: bits 0..3 of the codes |                   x = d s q - dmin t
// Q5_K, 176 bytes:  the same with 32 bytes, bit 4 of the codes, before the last field.
void DecodeQ4_K(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const float dmin = LoadF16(block + 2);
  for (int i = 0; i < kSuperBlock; ++i) {
    const auto [scale, minimum] = SixBits(block + 4, i / 32);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(PlanarNibble(block + 16, i)) -
             dmin * static_cast<float>(minimum);
  }
}

void DecodeQ5_K(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const float dmin = LoadF16(block + 2);
  for (int i = 0; i < kSuperBlock; ++i) {
    const auto [scale, minimum] = SixBits(block + 4, i / 32);
    const int code = PlanarNibble(block + 48, i) | PlanarBit(block + 16, i) << 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code) -
             dmin * static_cast<float>(minimum);
  }
}

// Q6_K, 210 bytes:  | 128 bytes: bits 0..3 of the codes | 64 bytes: bits 4 and 5 |
//                   | 16 signed bytes: scales of 16 elements | d: f16 |     x = d s (q - 32)
// Of each 128 elements byte b of 64 holds bits 0..3 of b (low half) and of b + 64 (high half).
void DecodeQ6_K(const std::byte* block, float* out) {
  const float d = LoadF16(block + 208);
  for (int i = 0; i < kSuperBlock; ++i) {
    const float step = d * static_cast<float>(LoadField<int8_t>(block + 192 + i / 16));
    const int low = SplitNibble(block + i / 128 * 64, i % 128, 64);
    out[i] = step * static_cast<float>((low | PlanarCrumb(block + 128, i) << 4) - 32);
  }
}

}  // namespace octavo
