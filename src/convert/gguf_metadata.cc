#include "convert/gguf_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace octavo {

Result<int64_t> RequireSize(const Value& metadata, std::string_view key) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t size, metadata.RequireInt(key));
  if (size < 1 || size > INT32_MAX) {
    return CorruptFile(fmt::format("{} is {}, expected 1 to {}", key, size, INT32_MAX));
  }
  return size;
}

Result<int64_t> SizeOr(const Value& metadata, std::string_view key, int64_t fallback) {
  if (metadata.Find(key) == nullptr) return fallback;
  return RequireSize(metadata, key);
}

namespace {

// The token id at `key`; -1 where the key is absent.
Result<int64_t> TokenId(const Value& metadata, std::string_view key, int64_t vocab_size) {
  if (metadata.Find(key) == nullptr) return -1;
  OCTAVO_ASSIGN_OR_RETURN(const int64_t id, metadata.RequireInt(key));
  if (id < 0 || id >= vocab_size) {
    return CorruptFile(fmt::format("{} is {}, but there are {} tokens", key, id, vocab_size));
  }
  return id;
}

}  // namespace

Status SetTokenIds(const Value& metadata, int64_t vocab_size, Value& object) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kIds = {{
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"},
  }};
  for (const auto& [name, key] : kIds) {
    OCTAVO_ASSIGN_OR_RETURN(const int64_t id, TokenId(metadata, key, vocab_size));
    if (id >= 0) object.Set(name, id);
  }
  return OkStatus();
}

Result<Value> MakeGenerationConfig(const Value& metadata, int64_t vocab_size) {
  Value config = Value::MakeObject();
  OCTAVO_RETURN_IF_ERROR(SetTokenIds(metadata, vocab_size, config));
  Value::Array ends;
  for (const char* name : {"eos", "eot", "eom"}) {
    OCTAVO_ASSIGN_OR_RETURN(
        const int64_t id,
        TokenId(metadata, fmt::format("tokenizer.ggml.{}_token_id", name), vocab_size));
    if (id >= 0 && std::find(ends.begin(), ends.end(), Value(id)) == ends.end()) ends.push_back(id);
  }
  if (ends.size() > 1) config.Set("eos_token_id", std::move(ends));
  return config;
}

}  // namespace octavo
