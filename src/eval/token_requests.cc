#include "eval/token_requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "text/jinja/unicode.h"

namespace octavo {

namespace {

constexpr int64_t kMaxConfigBytes = int64_t{64} << 20;

Result<Value> ReadConfig(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return Value::MakeObject();
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  return ParseJson(text, path.string());
}

std::optional<TokenId> FindToken(const Value& tokenizer_config, const Value& config,
                                 const std::string& name, const Tokenizer& tokenizer) {
  const Value* token = tokenizer_config.Find(name);
  if (token != nullptr && token->is_object()) token = token->Find("content");
  if (token != nullptr && token->is_string()) return tokenizer.TokenToId(token->as_string());
  const Value* id = config.Find(name + "_id");
  if (id != nullptr && id->is_array() && !id->as_array().empty()) id = &id->as_array().front();
  if (id != nullptr && id->is_int()) return static_cast<TokenId>(id->as_int());
  return std::nullopt;
}

}  // namespace

Result<FedTokens> Feed(const TokenRequest& request, int64_t max_length) {
  const int64_t scored = std::ssize(request.continuation);
  if (scored == 0) {
    return InvalidArgument(
        "no token is left of the continuation: its text merges into the context's last token; "
        "lm-eval stops here too");
  }
  if (scored > max_length) {
    return InvalidArgument(
        fmt::format("a continuation of {} tokens is longer than the model's {} positions; lm-eval "
                    "stops here too",
                    scored, max_length));
  }
  FedTokens fed;
  fed.tokens = request.context;
  fed.tokens.insert(fed.tokens.end(), request.continuation.begin(), request.continuation.end());
  const int64_t excess = std::ssize(fed.tokens) - (max_length + 1);
  fed.truncated = excess > 0;
  if (fed.truncated) fed.tokens.erase(fed.tokens.begin(), fed.tokens.begin() + excess);
  fed.last = fed.tokens.back();
  fed.tokens.pop_back();
  fed.first_scored = std::ssize(fed.tokens) - scored;
  if (fed.first_scored < 0) return InvalidArgument("there is no context, not even a prefix token");
  return fed;
}

RequestEncoder::RequestEncoder(const Tokenizer& tokenizer, TokenId prefix,
                               std::optional<bool> add_bos)
    : tokenizer_(tokenizer),
      prefix_(prefix),
      prefix_text_(tokenizer.Decode({&prefix, 1}, /*skip_special_tokens=*/false)),
      add_bos_(add_bos) {}

Result<std::vector<TokenId>> RequestEncoder::Encode(std::string_view text) const {
  if (!prefix_text_.empty() && text.starts_with(prefix_text_))
    return tokenizer_.Encode(text, false);
  OCTAVO_ASSIGN_OR_RETURN(std::vector<TokenId> ids,
                          tokenizer_.Encode(text, add_bos_.value_or(true)));
  // An option that is on also serves tokenizers that add nothing by themselves.
  if (add_bos_.value_or(false) && (ids.empty() || ids.front() != prefix_))
    ids.insert(ids.begin(), prefix_);
  return ids;
}

Result<TokenRequest> RequestEncoder::EncodePair(std::string_view context,
                                                std::string_view continuation) const {
  TokenRequest request;
  if (context.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(request.continuation, tokenizer_.Encode(continuation, false));
    request.context.push_back(prefix_);
    if (!request.continuation.empty() && request.continuation.front() == prefix_)
      request.continuation.erase(request.continuation.begin());
    return request;
  }
  const std::string whole = std::string(context) + std::string(continuation);
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> all, Encode(whole));
  OCTAVO_ASSIGN_OR_RETURN(request.context, Encode(jinja::Strip(context, jinja::Side::kRight)));
  const size_t border = std::min(request.context.size(), all.size());
  request.continuation.assign(all.begin() + static_cast<int64_t>(border), all.end());
  return request;
}

std::vector<TokenRequest> RollingWindows(std::span<const TokenId> tokens, TokenId prefix,
                                         int64_t max_length) {
  std::vector<TokenRequest> windows;
  const int64_t count = std::ssize(tokens);
  for (int64_t begin = 0; begin < count; begin += max_length) {
    const int64_t end = std::min(count, begin + max_length);
    TokenRequest window;
    window.continuation.assign(tokens.begin() + begin, tokens.begin() + end);
    if (begin == 0) {
      window.context.push_back(prefix);
    } else {
      // As much as the model holds beside what is predicted, one at least.
      window.context.assign(tokens.begin() + std::max<int64_t>(0, end - max_length - 1),
                            tokens.begin() + begin);
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

Result<TokenId> SpecialTokens::Prefix() const {
  if (bos) return *bos;
  if (eos) return *eos;
  return InvalidArgument(
      "neither tokenizer_config.json nor config.json names a BOS or EOS token; one of them stands "
      "for an empty context");
}

Result<SpecialTokens> ReadSpecialTokens(const std::filesystem::path& folder,
                                        const Tokenizer& tokenizer) {
  OCTAVO_ASSIGN_OR_RETURN(const Value tokenizer_config,
                          ReadConfig(folder / "tokenizer_config.json"));
  OCTAVO_ASSIGN_OR_RETURN(const Value config, ReadConfig(folder / "config.json"));
  SpecialTokens tokens;
  tokens.bos = FindToken(tokenizer_config, config, "bos_token", tokenizer);
  tokens.eos = FindToken(tokenizer_config, config, "eos_token", tokenizer);
  tokens.pad = FindToken(tokenizer_config, config, "pad_token", tokenizer);
  return tokens;
}

}  // namespace octavo
