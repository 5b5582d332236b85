#include "text/tokenizer.h"

#include "text/tokenizer_state.h"

namespace octavo {

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

int64_t Tokenizer::vocab_size() const {
  return state_->num_tokens;
}

std::optional<TokenId> Tokenizer::TokenToId(std::string_view token) const {
  if (const auto id = state_->model->vocabulary().Find(token)) return id;
  const auto added = state_->added.find(std::string(token));
  if (added == state_->added.end()) return std::nullopt;
  return added->second.id;
}

std::optional<std::string> Tokenizer::IdToToken(TokenId id) const {
  const std::string_view* token = state_->FindToken(id);
  if (token == nullptr) return std::nullopt;
  return std::string(*token);
}

bool Tokenizer::IsSpecial(TokenId id) const {
  return state_->IsSpecial(id);
}

std::optional<TokenId> Tokenizer::bos_added_by_encode() const {
  return state_->bos;
}

}  // namespace octavo
