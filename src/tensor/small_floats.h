// The floating-point formats of one byte and less, scalar: the reference for every vector kernel.
#pragma once

#include <array>
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

}  // namespace octavo
