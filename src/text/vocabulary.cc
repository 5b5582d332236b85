#include "text/vocabulary.h"

#include <fmt/format.h>

#include "base/json.h"

namespace octavo {

Result<Vocabulary> Vocabulary::FromJson(const Value& object) {
  if (!object.is_object()) {
    return CorruptFile(
        fmt::format("expected an object of tokens and ids, found {}", object.type_name()));
  }
  const Value::Object& members = object.as_object();
  size_t num_bytes = 0;
  int64_t max_id = -1;
  const int64_t limit = MaxId(members.size());
  for (const auto& [token, id] : members) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > limit) {
      return CorruptFile(
          fmt::format("token {}: id {} is not an integer from 0 to {} (there are {} tokens)",
                      JsonString(token), WriteJson(id).substr(0, 40), limit, members.size()));
    }
    max_id = std::max(max_id, id.as_int());
    num_bytes += token.size();
  }
  Vocabulary vocabulary;
  vocabulary.texts_.reserve(num_bytes + 1);  // not null even for one empty token
  vocabulary.tokens_.resize(static_cast<size_t>(max_id + 1));
  vocabulary.ids_.reserve(members.size());
  for (const auto& [token, id] : members) {
    const char* begin = vocabulary.texts_.data() + vocabulary.texts_.size();
    vocabulary.texts_.insert(vocabulary.texts_.end(), token.begin(), token.end());
    std::string_view& slot = vocabulary.tokens_[static_cast<size_t>(id.as_int())];
    if (slot.data() != nullptr) {
      return CorruptFile(fmt::format("tokens {} and {} have the same id {}",
                                     JsonString(std::string(slot)), JsonString(token),
                                     id.as_int()));
    }
    slot = std::string_view(begin, token.size());
    if (!vocabulary.ids_.emplace(slot, static_cast<TokenId>(id.as_int())).second) {
      return CorruptFile(fmt::format("token {} occurs twice", JsonString(token)));
    }
  }
  return vocabulary;
}

}  // namespace octavo
