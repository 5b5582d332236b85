// The floating-point formats of one byte and less, scalar: the reference for every vector kernel.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace octavo {

// E4M3 (float8_e4m3fn): 4 bits of exponent, bias 7, 3 of mantissa, no infinity; 0x7F and 0xFF are
// NaN.
inline constexpr float kMaxE4M3 = 448.0F;
float FloatFromE4M3(uint8_t bits);
// Round to nearest, ties to even; beyond 448 saturates, NaN stays NaN.
uint8_t E4M3FromFloat(float value);

// E2M1 (FP4): a code of 4 bits, the sign in bit 3.
inline constexpr float kMaxE2M1 = 6.0F;
inline constexpr std::array<float, 16> kE2M1Values = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,
                                                      4.0F,  6.0F,  -0.0F, -0.5F, -1.0F, -1.5F,
                                                      -2.0F, -3.0F, -4.0F, -6.0F};
// Round to nearest, ties to the code with an even last bit; beyond 6 saturates. NaN has no code:
// the caller keeps it out.
uint8_t E2M1FromFloat(float value);

// E8M0: 2^(bits - 127); 255 is NaN.
float FloatFromE8M0(uint8_t bits);

// The scale of an MX group with the largest magnitude `amax`: amax rounded to a power of two, up
// from 1.75 times one on, less `binades` (2 for E2M1, 8 for E4M3), as E8M0 holds it
// (checkpoint-format 4.5).
float MxScale(float amax, int binades);

// A value rounded to the nearest one of a format, ties to even, where it lies within the format's
// range; the sign stays, that of zero too. Vectorizes where the functions above would not: a sum
// with 1.5 * 2^23 times the distance between neighbours has no bits below it.
inline float WithSignOf(float value, float magnitude) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) |
                              (std::bit_cast<uint32_t>(value) & 0x80000000U));
}
inline float RoundToE4M3(float value) {
  constexpr uint32_t kExponent = 0x7F800000U;
  constexpr uint32_t kSmallestNormal = 0x3C800000U;  // 2^-6; neighbours below lie as near
  const uint32_t exponent = std::bit_cast<uint32_t>(value) & kExponent;
  const float magic =
      std::bit_cast<float>(exponent < kSmallestNormal ? kSmallestNormal : exponent) * 0x1.8p20F;
  return WithSignOf(value, (value + magic) - magic);
}
inline float RoundToE2M1(float value) {
  constexpr uint32_t kExponent = 0x7F800000U;
  constexpr uint32_t kOne = 0x3F800000U;
  const uint32_t exponent = std::bit_cast<uint32_t>(value) & kExponent;
  const float magic = std::bit_cast<float>(exponent < kOne ? kOne : exponent) * 0x1.8p22F;
  return WithSignOf(value, (value + magic) - magic);
}

}  // namespace octavo
