#include "tensor/small_floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace octavo {

float FloatFromE4M3(uint8_t bits) {
  constexpr uint32_t kNan = 0x7F;
  const uint32_t magnitude = bits & 0x7FU;
  const uint32_t sign = uint32_t{bits & 0x80U} << 24;
  if (magnitude == kNan) return std::bit_cast<float>(sign | 0x7FC00000U);
  // The fields in their places of a float32, whose exponent is then 120 too small; the product also
  // makes subnormals right.
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

uint8_t E4M3FromFloat(float value) {
  const auto sign = static_cast<uint32_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7FU);
  const float magnitude = std::min(std::fabs(value), kMaxE4M3);
  // Subnormals are multiples of 2^-9; the float32 sum rounds to them, ties to even.
  if (magnitude < 0x1p-6F) {
    constexpr float kMagic = 0x1.8p14F;  // its last bit is 2^-9
    const float rounded = (magnitude + kMagic) - kMagic;
    return static_cast<uint8_t>(sign | static_cast<uint32_t>(rounded * 0x1p9F));
  }
  const auto bits = std::bit_cast<uint32_t>(magnitude);
  const uint32_t rounded = bits + 0x7FFFFU + (bits >> 20 & 1U);
  return static_cast<uint8_t>(sign | ((rounded >> 20) - (120U << 3)));
}

uint8_t E2M1FromFloat(float value) {
  // What lies below the middle of two neighbours goes down; the middle goes to the even code.
  constexpr std::array<float, 7> kMiddles = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
  const float magnitude = std::fabs(value);
  unsigned code = 0;
  for (unsigned i = 0; i < kMiddles.size(); ++i) {
    const bool tie_goes_up = i % 2 == 1;
    code += static_cast<unsigned>(tie_goes_up ? magnitude >= kMiddles[i] : magnitude > kMiddles[i]);
  }
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8U : 0U));
}

float FloatFromE8M0(uint8_t bits) {
  if (bits == 255) return std::numeric_limits<float>::quiet_NaN();
  if (bits == 0) return 0x1p-127F;
  return std::bit_cast<float>(uint32_t{bits} << 23);
}

float MxScale(float amax, int binades) {
  const uint32_t rounded = (std::bit_cast<uint32_t>(amax) + (1U << 21)) & 0x7F800000U;
  const int exponent = static_cast<int>(rounded >> 23) - 127 - binades;
  return std::ldexp(1.0F, std::max(exponent, -127));
}

}  // namespace octavo
