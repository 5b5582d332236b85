// GGUF to a Hugging Face folder: weights in BF16, config and tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/context.h"
#include "base/status.h"

namespace octavo {

struct ImportOptions {
  bool force = false;  // replace an existing output
  int64_t max_shard_bytes = 20'000'000'000;
};

// Writes config.json, generation_config.json, the weights (dequantized to float32 and rounded to
// BF16, the rows of q and k in Hugging Face's order), tokenizer.json and tokenizer_config.json to
// the new folder `out`. Memory: one BF16 tensor at a time. Errors name the file; what is not
// implemented (architecture, block type, pre-tokenizer) is refused by name before anything is
// written. After an error or a cancellation nothing is left.
Status ImportGguf(const std::filesystem::path& gguf, const std::filesystem::path& out,
                  const ImportOptions& options, const Context& context);

}  // namespace octavo
