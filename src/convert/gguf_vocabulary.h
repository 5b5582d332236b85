// The vocabulary of a GGUF file, checked: tokens, their kinds, and their merges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

// The numbers of tokenizer.ggml.token_type.
enum class GgufTokenKind : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

using GgufMerge = std::pair<std::string_view, std::string_view>;

// Views into the metadata it was read from, which must outlive it.
class GgufVocabulary {
 public:
  // CorruptFile for tokens that occur twice or are not UTF-8, and lists of unequal length.
  static Result<GgufVocabulary> Read(const Value& metadata);

  const std::vector<std::string_view>& tokens() const { return tokens_; }
  GgufTokenKind kind(size_t id) const { return kinds_[id]; }
  // The token that a metadata key names by its id; nothing where the key is absent.
  Result<std::optional<std::string_view>> TokenOf(const Value& metadata,
                                                  std::string_view key) const;

  // tokenizer.ggml.merges, in order. Both halves and their union are tokens.
  Result<std::vector<GgufMerge>> ReadMerges(const Value& metadata) const;
  // The merges that a SentencePiece BPE model implies by tokenizer.ggml.scores: every split of a
  // normal token into two tokens, best score first, then by id of the token and of the halves.
  Result<std::vector<GgufMerge>> MergesFromScores(const Value& metadata) const;

 private:
  std::vector<std::string_view> tokens_;
  std::vector<GgufTokenKind> kinds_;
  std::unordered_map<std::string_view, int64_t> ids_;
};

}  // namespace octavo
