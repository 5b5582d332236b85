#include "convert/gguf_metadata.h"

#include <fmt/format.h>

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

Status SetTokenIds(const Value& metadata, int64_t vocab_size, Value& object) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kIds = {{
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"},
  }};
  for (const auto& [name, key] : kIds) {
    if (metadata.Find(key) == nullptr) continue;
    OCTAVO_ASSIGN_OR_RETURN(const int64_t id, metadata.RequireInt(key));
    if (id < 0 || id >= vocab_size) {
      return CorruptFile(fmt::format("{} is {}, but there are {} tokens", key, id, vocab_size));
    }
    object.Set(name, id);
  }
  return OkStatus();
}

}  // namespace octavo
