// Checked access to the metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

// An integer from 1 to 2^31 - 1: sizes beyond that are garbage, and products of two then fit.
Result<int64_t> RequireSize(const Value& metadata, std::string_view key);
// The same, or `fallback` where the key is absent.
Result<int64_t> SizeOr(const Value& metadata, std::string_view key, int64_t fallback);

// Sets bos_token_id, eos_token_id and pad_token_id in `object`, as far as the file has them; an id
// outside the vocabulary is an error.
Status SetTokenIds(const Value& metadata, int64_t vocab_size, Value& object);

// generation_config.json: these ids, and as eos_token_id a list where the file also names a token
// that ends a turn or a message.
Result<Value> MakeGenerationConfig(const Value& metadata, int64_t vocab_size);

}  // namespace octavo
