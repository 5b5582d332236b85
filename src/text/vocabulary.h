// Vocabulary: tokens and their ids, each text stored once.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "text/token_id.h"

namespace octavo {

class Vocabulary {
 public:
  // `object` maps tokens to ids, as "vocab" of tokenizer.json. Ids may leave holes, but no more
  // than a file of this size can need.
  static Result<Vocabulary> FromJson(const Value& object);
  Vocabulary(Vocabulary&&) noexcept = default;  // texts stay where they are
  Vocabulary& operator=(Vocabulary&&) noexcept = default;

  std::optional<TokenId> Find(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  // The token's text; nothing for an id that no token has.
  std::optional<std::string_view> Token(TokenId id) const {
    if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) return std::nullopt;
    const std::string_view token = tokens_[static_cast<size_t>(id)];
    if (token.data() == nullptr) return std::nullopt;
    return token;
  }
  size_t size() const { return ids_.size(); }
  // One more than the largest id.
  TokenId id_limit() const { return static_cast<TokenId>(tokens_.size()); }

  // Ids up to this are accepted where `num_tokens` tokens are named: room for holes, none for a
  // lying id.
  static int64_t MaxId(size_t num_tokens) {
    return static_cast<int64_t>(num_tokens) * 4 + (1 << 16);
  }

 private:
  Vocabulary() = default;
  std::vector<char> texts_;
  std::vector<std::string_view> tokens_;  // by id; holes have no data
  std::unordered_map<std::string_view, TokenId> ids_;
};

}  // namespace octavo
