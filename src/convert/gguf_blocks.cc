#include "convert/gguf_blocks.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

constexpr int kBlock = 32;  // elements of a Q4_0, Q4_1 or Q8_0 block

template <typename T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

float LoadF16(const std::byte* bytes) {
  return FloatFromF16(Load<uint16_t>(bytes));
}

void DecodeF32(const std::byte* block, float* out) {
  *out = Load<float>(block);
}

void DecodeF16(const std::byte* block, float* out) {
  *out = LoadF16(block);
}

void DecodeBf16(const std::byte* block, float* out) {
  *out = FloatFromBf16(Load<uint16_t>(block));
}

// The 4-bit types pack element i in the low half of byte i, element i + 16 in its high half.
//
//   Q4_0, 18 bytes:  | d: f16 | 16 bytes of codes |              x = d (q - 8)
//   Q4_1, 20 bytes:  | d: f16 | m: f16 | 16 bytes of codes |     x = d q + m
//   Q8_0, 34 bytes:  | d: f16 | 32 signed bytes |                x = d q
void DecodeQ4_0(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < kBlock / 2; ++i) {
    const int codes = Load<uint8_t>(block + 2 + i);
    out[i] = d * static_cast<float>((codes & 15) - 8);
    out[i + kBlock / 2] = d * static_cast<float>((codes >> 4) - 8);
  }
}

void DecodeQ4_1(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  const float m = LoadF16(block + 2);
  for (int i = 0; i < kBlock / 2; ++i) {
    const int codes = Load<uint8_t>(block + 4 + i);
    out[i] = d * static_cast<float>(codes & 15) + m;
    out[i + kBlock / 2] = d * static_cast<float>(codes >> 4) + m;
  }
}

void DecodeQ8_0(const std::byte* block, float* out) {
  const float d = LoadF16(block);
  for (int i = 0; i < kBlock; ++i) out[i] = d * static_cast<float>(Load<int8_t>(block + 2 + i));
}

constexpr std::array kDecoders = {
#define OCTAVO_GGUF_BLOCK(name, function) GgufBlockDecoder{name, function},
#include "convert/gguf_blocks.inc"
#undef OCTAVO_GGUF_BLOCK
};

}  // namespace

Result<const GgufBlockDecoder*> FindGgufBlockDecoder(const GgmlType& type) {
  std::string known;
  for (const GgufBlockDecoder& decoder : kDecoders) {
    if (decoder.name == type.name) return &decoder;
    known += (known.empty() ? "" : ", ") + std::string(decoder.name);
  }
  return Unsupported(fmt::format("block type {} cannot be decoded, only {}", type.name, known));
}

void DecodeGgufBlocks(const GgmlType& type, const GgufBlockDecoder& decoder,
                      std::span<const std::byte> blocks, std::span<float> out) {
  const auto count = static_cast<int64_t>(out.size()) / type.block_elements;
  OCTAVO_CHECK(count * type.block_elements == static_cast<int64_t>(out.size()) &&
               count * type.block_bytes == static_cast<int64_t>(blocks.size()))
      << type.name << ": " << blocks.size() << " bytes for " << out.size() << " elements";
  for (int64_t i = 0; i < count; ++i) {
    decoder.decode(blocks.data() + i * type.block_bytes, out.data() + i * type.block_elements);
  }
}

}  // namespace octavo
