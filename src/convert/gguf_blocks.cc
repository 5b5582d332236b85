#include "convert/gguf_blocks.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "convert/gguf_block_decoders.h"

namespace octavo {

namespace {

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
