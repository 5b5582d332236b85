#include "eval/same_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace octavo {

namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{64} << 20;

std::string TokenText(const std::optional<std::string>& token) {
  return token ? JsonString(*token) : "no token";
}

std::optional<std::string> VocabularyDifference(const Tokenizer& base, const Tokenizer& model) {
  int64_t base_left = base.vocab_size();
  int64_t model_left = model.vocab_size();
  for (TokenId id = 0; base_left > 0 || model_left > 0; ++id) {
    const auto base_token = base.IdToToken(id);
    const auto model_token = model.IdToToken(id);
    if (base_token != model_token) {
      return fmt::format("token {} is {} there and {} here", id, TokenText(base_token),
                         TokenText(model_token));
    }
    if (!base_token) continue;
    if (base.IsSpecial(id) != model.IsSpecial(id)) {
      return fmt::format("token {}, {}, is {} there and {} here", id, TokenText(base_token),
                         base.IsSpecial(id) ? "special" : "ordinary",
                         model.IsSpecial(id) ? "special" : "ordinary");
    }
    --base_left;
    --model_left;
  }
  return std::nullopt;
}

Result<std::optional<std::string>> EncodingDifference(const Tokenizer& base, const Tokenizer& model,
                                                      std::string_view text) {
  OCTAVO_ASSIGN_OR_RETURN(const auto base_ids, base.Encode(text, false));
  OCTAVO_ASSIGN_OR_RETURN(const auto model_ids, model.Encode(text, false));
  const auto [a, b] =
      std::mismatch(base_ids.begin(), base_ids.end(), model_ids.begin(), model_ids.end());
  if (a == base_ids.end() && b == model_ids.end()) return std::optional<std::string>();
  const auto token = [](const Tokenizer& tokenizer, const std::vector<TokenId>& ids, auto place) {
    if (place == ids.end()) return std::string("the end");
    return fmt::format("token {}, {}", *place, TokenText(tokenizer.IdToToken(*place)));
  };
  return std::optional(fmt::format("token {} of the text is {} there and {} here",
                                   a - base_ids.begin(), token(base, base_ids, a),
                                   token(model, model_ids, b)));
}

}  // namespace

Status CheckSameTokenizer(const std::filesystem::path& base, const std::filesystem::path& model,
                          std::string_view text, Logger& log) {
  const auto file = [](const std::filesystem::path& folder) { return folder / "tokenizer.json"; };
  if (!std::filesystem::exists(file(model))) {
    log.Warning(fmt::format("{} has no tokenizer.json; that of {} is taken for both",
                            model.string(), base.string()));
    return OkStatus();
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::string base_bytes, ReadFile(file(base), kMaxTokenizerBytes));
  OCTAVO_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file(model), kMaxTokenizerBytes));
  if (base_bytes == bytes) return OkStatus();
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer base_tokenizer, Tokenizer::Load(base));
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(model));
  std::optional<std::string> difference = VocabularyDifference(base_tokenizer, tokenizer);
  if (!difference) {
    OCTAVO_ASSIGN_OR_RETURN(difference, EncodingDifference(base_tokenizer, tokenizer, text));
  }
  if (!difference) return OkStatus();
  return InvalidArgument(
      fmt::format("{}: its tokenizer is not that of {}: {}; models that read other tokens cannot "
                  "be compared",
                  model.string(), base.string(), *difference));
}

}  // namespace octavo
