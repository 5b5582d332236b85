// Blocks of ggml's quantized types decoded to float32.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "io/gguf.h"

namespace octavo {

// A block type that can be decoded.
struct GgufBlockDecoder {
  std::string_view name;
  // One block: block_bytes bytes to block_elements floats.
  void (*decode)(const std::byte* block, float* out);
};

// Unsupported (naming the type and those that work) where no decoder exists.
Result<const GgufBlockDecoder*> FindGgufBlockDecoder(const GgmlType& type);

// Decodes whole blocks: `blocks` holds exactly as many as `out` needs. The values are those of the
// gguf Python package, bit for bit.
void DecodeGgufBlocks(const GgmlType& type, const GgufBlockDecoder& decoder,
                      std::span<const std::byte> blocks, std::span<float> out);

}  // namespace octavo
