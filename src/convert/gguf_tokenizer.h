// The tokenizer of a GGUF file as tokenizer.json and tokenizer_config.json.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

struct ImportedTokenizer {
  Value pipeline;  // tokenizer.json
  Value config;    // tokenizer_config.json
};

// From tokenizer.ggml.* of the metadata: model `gpt2` (byte-level BPE) with the pre-tokenizers of
// the table in the .cc, and model `llama` (SentencePiece BPE with byte fallback). Others are
// refused by name, as are more tokens than the model's `vocab_size`.
Result<ImportedTokenizer> MakeTokenizer(const Value& metadata, int64_t vocab_size);

}  // namespace octavo
