// The IQ types: codes are indices into codebooks of vectors, or into a table of levels.
#include <array>
#include <bit>

#include "convert/gguf_block_decoders.h"

namespace octavo {

namespace {

#include "convert/gguf_iq_grids.inc"

// What the elements of a codebook's vectors can be; a vector's bits index them.
constexpr std::array<float, 3> kLevels1 = {-1, 0, 1};
constexpr std::array<float, 3> kLevels2 = {8, 25, 43};
constexpr std::array<float, 8> kLevels3 = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<float, 8> kLevels3S = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<float, 16> kLevels4 = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

// Element j of a vector of 8 (2 bits each) and of 4 (3 bits each).
float Of8(const std::array<float, 3>& levels, int vector, int j) {
  return levels[static_cast<size_t>(vector >> 2 * j & 3)];
}
float Of4(const std::array<float, 8>& levels, int vector, int j) {
  return levels[static_cast<size_t>(vector >> 3 * j & 7)];
}

template <size_t n>
int Look(const std::array<uint16_t, n>& grid, int index) {
  return grid[static_cast<size_t>(index)];
}

// 8 signs in 7 bits: the last one makes the number of minus signs even.
int EightSigns(uint32_t seven) {
  return static_cast<int>(seven | static_cast<uint32_t>(std::popcount(seven) & 1) << 7);
}

float Signed(float value, int signs, int j) {
  return (signs >> j & 1) != 0 ? -value : value;
}

}  // namespace

// IQ2_XXS, 66 bytes:  | d: f16 | 8 of | 4 bytes: vectors of 8 | u32: 4 x 7 signs, scale s: 4 bits |
//                                                                x = d (s + 1/2) / 4 * v * sign
void DecodeIq2_Xxs(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int part = 0; part < 8; ++part) {
    const std::byte* codes = block + 2 + 8 * part;
    const auto rest = LoadField<uint32_t>(codes + 4);
    const float step = d * (0.5F + static_cast<float>(rest >> 28)) * 0.25F;
    for (int i = 0; i < 4; ++i) {
      const int vector = Look(kIq2XxsGrid, LoadByte(codes, i));
      const int signs = EightSigns(rest >> 7 * i & 127);
      for (int j = 0; j < 8; ++j) *out++ = Signed(step * Of8(kLevels2, vector, j), signs, j);
    }
  }
}

// IQ2_XS, 74 bytes:  | d: f16 | 32 of u16: vector (9 bits), 7 signs | 16 scales of 4 bits |
void DecodeIq2_Xs(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < 32; ++i) {
    const auto code = LoadField<uint16_t>(block + 2 + 2 * i);
    const float step = d * (0.5F + static_cast<float>(Nibble(block + 66, i / 2))) * 0.25F;
    const int vector = Look(kIq2XsGrid, code & 511);
    const int signs = EightSigns(code >> 9);
    for (int j = 0; j < 8; ++j) *out++ = Signed(step * Of8(kLevels2, vector, j), signs, j);
  }
}

// IQ2_S, 82 bytes:  | d: f16 | 32 bytes: vectors | 32 bytes of signs | 8 bytes: bits 8 and 9 of the
//                     vectors | 16 scales of 4 bits |
void DecodeIq2_S(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < 32; ++i) {
    const float step = d * (0.5F + static_cast<float>(Nibble(block + 74, i / 2))) * 0.25F;
    const int high = LoadByte(block + 66, i / 4) >> 2 * (i % 4) & 3;
    const int vector = Look(kIq2SGrid, LoadByte(block + 2, i) | high << 8);
    const int signs = LoadByte(block + 34, i);
    for (int j = 0; j < 8; ++j) *out++ = Signed(step * Of8(kLevels2, vector, j), signs, j);
  }
}

// IQ3_XXS, 98 bytes:  | d: f16 | 64 bytes: vectors of 4 | 8 of u32: 4 x 7 signs, scale s: 4 bits |
//                                                                x = d (s + 1/2) / 2 * v * sign
void DecodeIq3_Xxs(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < 64; ++i) {
    const auto rest = LoadField<uint32_t>(block + 66 + 4 * (i / 8));
    const float step = d * (0.5F + static_cast<float>(rest >> 28)) * 0.5F;
    const int signs = EightSigns(rest >> 7 * (i % 8 / 2) & 127) >> 4 * (i % 2);
    const int vector = Look(kIq3XxsGrid, LoadByte(block + 2, i));
    for (int j = 0; j < 4; ++j) *out++ = Signed(step * Of4(kLevels3, vector, j), signs, j);
  }
}

// IQ3_S, 110 bytes:  | d: f16 | 64 bytes: vectors | 8 bytes: bit 8 of the vectors | 32 bytes of
//                      signs | 8 scales s of 4 bits |            x = d (2 s + 1) v * sign
void DecodeIq3_S(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < 64; ++i) {
    const float step = d * static_cast<float>(1 + 2 * Nibble(block + 106, i / 8));
    const int high = LoadByte(block + 66, i / 8) >> i % 8 & 1;
    const int vector = Look(kIq3SGrid, LoadByte(block + 2, i) | high << 8);
    const int signs = LoadByte(block + 74, i / 2) >> 4 * (i % 2);
    for (int j = 0; j < 4; ++j) *out++ = Signed(step * Of4(kLevels3S, vector, j), signs, j);
  }
}

// The IQ1 types add an eighth, or take one away, from every element of a vector.
//
// IQ1_S, 50 bytes:  | d: f16 | 32 bytes: vectors | 8 of u16: bits 8..10 of 4 vectors, scale s: 3
//                     bits, sign of the eighth |                 x = d (2 s + 1) (v +- 1/8)
void DecodeIq1_S(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < 32; ++i) {
    const int rest = LoadField<uint16_t>(block + 34 + 2 * (i / 4));
    const float step = d * static_cast<float>(2 * (rest >> 12 & 7) + 1);
    const float shift = (rest & 0x8000) == 0 ? 0.125F : -0.125F;
    const int high = rest >> 3 * (i % 4) & 7;
    const int vector = Look(kIq1Grid, LoadByte(block + 2, i) | high << 8);
    for (int j = 0; j < 8; ++j) *out++ = step * (Of8(kLevels1, vector, j) + shift);
  }
}

// IQ1_M, 56 bytes:  | 32 bytes: vectors | 32 halves of a byte: bits 8..10, sign of the eighth |
//                   | 4 of u16: 4 scales of 3 bits, a quarter of d: f16 |
void DecodeIq1_M(const std::byte* block, float* out) {
  const auto scales = [&](int i) -> int { return LoadField<uint16_t>(block + 48 + 2 * i); };
  int bits = 0;
  for (int i = 0; i < 4; ++i) bits |= scales(i) >> 12 << 4 * i;
  const float d = FloatFromF16(static_cast<uint16_t>(bits));
  for (int i = 0; i < 32; ++i) {
    const int scale = i / 2;  // of 16 elements
    const float step = d * static_cast<float>(2 * (scales(scale / 4) >> 3 * (scale % 4) & 7) + 1);
    const int high = Nibble(block + 32, i);
    const float shift = (high & 8) == 0 ? 0.125F : -0.125F;
    const int vector = Look(kIq1Grid, LoadByte(block, i) | (high & 7) << 8);
    for (int j = 0; j < 8; ++j) *out++ = step * (Of8(kLevels1, vector, j) + shift);
  }
}

// IQ4_NL, 18 bytes:  as Q4_0, the code being an index into a table of levels.
void DecodeIq4_Nl(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * kLevels4[static_cast<size_t>(SplitNibble(block + 2, i, 16))];
  }
}

// IQ4_XS, 136 bytes:  | d: f16 | u16: bits 4 and 5 of 8 scales s | 4 bytes: bits 0..3 |
//                     | 8 of 16 bytes of codes, as IQ4_NL |      x = d (s - 32) level
void DecodeIq4_Xs(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const int high = LoadField<uint16_t>(block + 2);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int part = i / 32;
    const int scale = Nibble(block + 4, part) | (high >> 2 * part & 3) << 4;
    const float step = d * static_cast<float>(scale - 32);
    const int code = SplitNibble(block + 8 + 16 * part, i % 32, 16);
    out[i] = step * kLevels4[static_cast<size_t>(code)];
  }
}

}  // namespace octavo
