// The ternary types: 256 elements of -1, 0 or 1 with one scale.
#include <array>

#include "convert/gguf_block_decoders.h"

namespace octavo {

// TQ1_0, 54 bytes:  | 32 + 16 bytes of 5 codes each | 4 bytes of 4 codes each | d: f16 |
//
// A byte b is a fraction b / 256; multiplied by 3, the integer part is its first code, what is left
// holds the others. The fields' codes follow one another plane by plane: of the first field, code 0
// of its 32 bytes, then code 1 of its 32 bytes ...                         x = d (q - 1)
namespace {

void DecodePlanes(const std::byte* bytes, int num_bytes, int planes, float d, float* out) {
  constexpr std::array<unsigned, 5> kPowers = {1, 3, 9, 27, 81};
  for (int i = 0; i < num_bytes * planes; ++i) {
    const unsigned power = kPowers[static_cast<size_t>(i / num_bytes)];
    const unsigned fraction = static_cast<unsigned>(LoadByte(bytes, i % num_bytes)) * power & 255;
    out[i] = d * static_cast<float>(static_cast<int>(fraction * 3 >> 8) - 1);
  }
}

}  // namespace

void DecodeTq1_0(const std::byte* block, float* out) {
  const float d = LoadF16(block + 52);
  DecodePlanes(block, 32, 5, d, out);
  DecodePlanes(block + 32, 16, 5, d, out + 160);
  DecodePlanes(block + 48, 4, 4, d, out + 240);
}

// TQ2_0, 66 bytes:  | 64 bytes of 2-bit codes | d: f16 |                     x = d (q - 1)
void DecodeTq2_0(const std::byte* block, float* out) {
  const float d = LoadF16(block + 64);
  for (int i = 0; i < kSuperBlock; ++i) {
    out[i] = d * static_cast<float>(PlanarCrumb(block, i) - 1);
  }
}

}  // namespace octavo
