#include "convert/gguf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/json.h"

namespace octavo {

namespace {

// Splitting a token takes time in the square of its length; vocabularies stay far below this.
constexpr size_t kMaxSplitBytes = 256;

Result<const Value::Array*> RequireArray(const Value& metadata, std::string_view key) {
  const Value* value = metadata.Find(key);
  if (value == nullptr) return NotFound(std::string(key) + " is missing");
  if (!value->is_array()) {
    return CorruptFile(fmt::format("{} is {}, expected an array", key, value->type_name()));
  }
  return &value->as_array();
}

// Length of the UTF-8 sequence that starts at text[at], 0 if it is not well-formed (Unicode,
// table 3-7).
size_t SequenceLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF && continues(1)) return 2;
  if ((first & 0xF0U) == 0xE0 && continues(1) && continues(2)) {
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && continues(1) && continues(2) && continues(3)) {
    const bool overlong = first == 0xF0 && second < 0x90;
    const bool beyond = first == 0xF4 && second > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace

Result<GgufVocabulary> GgufVocabulary::Read(const Value& metadata) {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* tokens,
                          RequireArray(metadata, "tokenizer.ggml.tokens"));
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* kinds,
                          RequireArray(metadata, "tokenizer.ggml.token_type"));
  if (tokens->size() != kinds->size()) {
    return CorruptFile(fmt::format("{} tokens, but {} entries in tokenizer.ggml.token_type",
                                   tokens->size(), kinds->size()));
  }
  GgufVocabulary vocabulary;
  for (size_t id = 0; id < tokens->size(); ++id) {
    const Value& token = (*tokens)[id];
    if (!token.is_string() || !IsUtf8(token.as_string())) {
      return CorruptFile(fmt::format("token {} is no UTF-8 string", id));
    }
    const Value& kind = (*kinds)[id];
    if (!kind.is_int() || kind.as_int() < 1 || kind.as_int() > 6) {
      return CorruptFile(fmt::format("token {} is of type {}, expected 1 to 6", id,
                                     WriteJson(kind).substr(0, 40)));
    }
    const auto [found, added] =
        vocabulary.ids_.emplace(token.as_string(), static_cast<int64_t>(id));
    if (!added) {
      return CorruptFile(fmt::format("tokens {} and {} are both {}", found->second, id,
                                     JsonString(token.as_string())));
    }
    vocabulary.tokens_.push_back(token.as_string());
    vocabulary.kinds_.push_back(static_cast<GgufTokenKind>(kind.as_int()));
  }
  return vocabulary;
}

Result<std::optional<std::string_view>> GgufVocabulary::TokenOf(const Value& metadata,
                                                                std::string_view key) const {
  if (metadata.Find(key) == nullptr) return std::optional<std::string_view>();
  OCTAVO_ASSIGN_OR_RETURN(const int64_t id, metadata.RequireInt(key));
  if (id < 0 || id >= static_cast<int64_t>(tokens_.size())) {
    return CorruptFile(fmt::format("{} is {}, but there are {} tokens", key, id, tokens_.size()));
  }
  return std::optional(tokens_[static_cast<size_t>(id)]);
}

Result<std::vector<GgufMerge>> GgufVocabulary::ReadMerges(const Value& metadata) const {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* array,
                          RequireArray(metadata, "tokenizer.ggml.merges"));
  std::vector<GgufMerge> merges;
  std::string joined;
  for (size_t i = 0; i < array->size(); ++i) {
    const Value& value = (*array)[i];
    const std::string_view text = value.is_string() ? value.as_string() : std::string_view();
    // The halves are byte-level tokens, which hold no space; one at the front would be a half.
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos) {
      return CorruptFile(fmt::format("merge {} is {}, expected two tokens and a space", i,
                                     WriteJson(value).substr(0, 80)));
    }
    const GgufMerge merge(text.substr(0, space), text.substr(space + 1));
    joined.assign(merge.first).append(merge.second);
    if (!ids_.contains(merge.first) || !ids_.contains(merge.second) || !ids_.contains(joined)) {
      return CorruptFile(fmt::format("merge {} is {}, whose parts or union are no tokens", i,
                                     WriteJson(value).substr(0, 80)));
    }
    merges.push_back(merge);
  }
  return merges;
}

Result<std::vector<GgufMerge>> GgufVocabulary::MergesFromScores(const Value& metadata) const {
  OCTAVO_ASSIGN_OR_RETURN(const Value::Array* scores,
                          RequireArray(metadata, "tokenizer.ggml.scores"));
  if (scores->size() != tokens_.size()) {
    return CorruptFile(fmt::format("{} tokens, but {} entries in tokenizer.ggml.scores",
                                   tokens_.size(), scores->size()));
  }
  struct Split {
    double score;
    int64_t id, left, right;
  };
  std::vector<Split> splits;
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (kinds_[id] != GgufTokenKind::kNormal) continue;
    const Value& score = (*scores)[id];
    if (!score.is_number() || score.as_double() != score.as_double()) {
      return CorruptFile(fmt::format("the score of token {} is no number", id));
    }
    const std::string_view token = tokens_[id];
    if (token.size() > kMaxSplitBytes) {
      return Unsupported(fmt::format("token {} has {} bytes, at most {} are imported", id,
                                     token.size(), kMaxSplitBytes));
    }
    for (size_t at = 1; at < token.size(); ++at) {
      const auto left = ids_.find(token.substr(0, at));
      const auto right = ids_.find(token.substr(at));
      if (left == ids_.end() || right == ids_.end()) continue;
      splits.push_back({score.as_double(), static_cast<int64_t>(id), left->second, right->second});
    }
  }
  std::sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
    return std::tie(b.score, a.id, a.left, a.right) < std::tie(a.score, b.id, b.left, b.right);
  });
  std::vector<GgufMerge> merges;
  for (const Split& split : splits) {
    merges.emplace_back(tokens_[static_cast<size_t>(split.left)],
                        tokens_[static_cast<size_t>(split.right)]);
  }
  return merges;
}

}  // namespace octavo
