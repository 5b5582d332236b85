// GGUF to a Hugging Face folder: weights, config and tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/context.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace octavo {

struct ImportOptions {
  bool force = false;  // replace an existing output
  int64_t max_shard_bytes = 20'000'000'000;
  // F32, F16 or BF16; none: F32 or F16 where every matrix of the file is that, else BF16.
  std::optional<DType> dtype = {};
};

// Writes config.json, generation_config.json, the weights (dequantized to float32 and rounded
// once, the rows of q and k in Hugging Face's order), tokenizer.json and tokenizer_config.json to
// the new folder `out`. Memory: one tensor at a time. Errors name the file; what is not
// implemented (architecture, block type, pre-tokenizer) is refused by name before anything is
// written. After an error or a cancellation nothing is left.
Status ImportGguf(const std::filesystem::path& gguf, const std::filesystem::path& out,
                  const ImportOptions& options, const Context& context);

}  // namespace octavo
