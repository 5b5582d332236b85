// Plain floats, and the types with one scale for a few dozen elements.
#include <array>
#include <bit>

#include "convert/gguf_block_decoders.h"

namespace octavo {

void DecodeF32(const std::byte* block, float* out) {
  *out = LoadField<float>(block);
}

void DecodeF16(const std::byte* block, float* out) {
  *out = LoadF16(block);
}

void DecodeBf16(const std::byte* block, float* out) {
  *out = FloatFromBf16(LoadField<uint16_t>(block));
}

// Codes of 4 bits: element i in the low half of byte i, element i + 16 in its high half. The fifth
// bit of element i is bit i of h.
//
//   Q4_0, 18 bytes:  | d: f16 | 16 bytes of codes |                         x = d (q - 8)
//   Q4_1, 20 bytes:  | d: f16 | m: f16 | 16 bytes of codes |                x = d q + m
//   Q5_0, 22 bytes:  | d: f16 | h: u32 | 16 bytes of codes |                x = d (q - 16)
//   Q5_1, 24 bytes:  | d: f16 | m: f16 | h: u32 | 16 bytes of codes |       x = d q + m
//   Q8_0, 34 bytes:  | d: f16 | 32 signed bytes |                           x = d q
void DecodeQ4_0(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * static_cast<float>(SplitNibble(block + 2, i, 16) - 8);
  }
}

void DecodeQ4_1(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const float m = LoadF16(block + 2);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * static_cast<float>(SplitNibble(block + 4, i, 16)) + m;
  }
}

namespace {

int FifthBit(uint32_t h, int i) {
  return static_cast<int>(h >> i & 1) << 4;
}

}  // namespace

void DecodeQ5_0(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const auto h = LoadField<uint32_t>(block + 2);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * static_cast<float>((SplitNibble(block + 6, i, 16) | FifthBit(h, i)) - 16);
  }
}

void DecodeQ5_1(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const float m = LoadF16(block + 2);
  const auto h = LoadField<uint32_t>(block + 4);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * static_cast<float>(SplitNibble(block + 8, i, 16) | FifthBit(h, i)) + m;
  }
}

void DecodeQ8_0(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * static_cast<float>(LoadField<int8_t>(block + 2 + i));
  }
}

// FP4 E2M1, all values doubled; the scales below are halved for it.
//
//   MXFP4, 17 bytes:  | e: E8M0 | 16 bytes of codes, as Q4_0 |                  x = 2^(e - 128) q
//   NVFP4, 36 bytes:  | 4 scales: E4M3 | 4 groups of 8 bytes, element i of a group in the low half
//                       of byte i, i + 8 in its high half |                     x = scale / 2 * q
namespace {

constexpr std::array<float, 16> kDoubledFp4 = {0, 1,  2,  3,  4,  6,  8,  12,
                                               0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e - 128): below 2^-126 a subnormal.
float HalfE8m0(int e) {
  if (e < 2) return std::bit_cast<float>(uint32_t{0x00200000} << e);
  return std::bit_cast<float>(static_cast<uint32_t>(e - 1) << 23);
}

// Half of an E4M3 number without a sign; the code of NaN counts as 0.
float HalfUnsignedE4m3(int code) {
  if (code == 0x7F) return 0;
  const int exponent = code >> 3 & 15;
  const auto mantissa = static_cast<float>(code & 7);
  if (exponent == 0) return mantissa * 0x1p-10F;
  return (8 + mantissa) * std::bit_cast<float>(static_cast<uint32_t>(exponent + 127 - 11) << 23);
}

}  // namespace

void DecodeMxfp4(const std::byte* block, float* out) {
  const float d = HalfE8m0(LoadByte(block, 0));
  for (int i = 0; i < kSmallBlock; ++i) {
    out[i] = d * kDoubledFp4[static_cast<size_t>(SplitNibble(block + 1, i, 16))];
  }
}

void DecodeNvfp4(const std::byte* block, float* out) {
  for (int group = 0; group < 4; ++group) {
    const float d = HalfUnsignedE4m3(LoadByte(block, group));
    const std::byte* codes = block + 4 + 8 * group;
    for (int i = 0; i < 16; ++i) {
      *out++ = d * kDoubledFp4[static_cast<size_t>(SplitNibble(codes, i, 8))];
    }
  }
}

}  // namespace octavo
