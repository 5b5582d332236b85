#include "runtime/generation.h"

#include "base/file.h"
#include "base/json.h"

namespace octavo {

namespace {

Result<std::vector<TokenId>> ParseEosTokens(const Value& config) {
  std::vector<TokenId> tokens;
  const Value* eos = config.Find("eos_token_id");
  if (eos == nullptr || eos->is_null()) return tokens;
  const Value::Array one = {*eos};
  for (const Value& id : eos->is_array() ? eos->as_array() : one) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() > INT32_MAX) {
      return InvalidArgument("\"eos_token_id\" is expected to be a token id or a list of them");
    }
    tokens.push_back(static_cast<TokenId>(id.as_int()));
  }
  return tokens;
}

}  // namespace

std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Result<std::vector<TokenId>> ReadEosTokens(const std::filesystem::path& folder,
                                           const Value& config) {
  const std::filesystem::path path = folder / "generation_config.json";
  if (std::filesystem::exists(path)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, int64_t{1} << 20));
    OCTAVO_ASSIGN_OR_RETURN(const Value generation, ParseJson(text, path.string()));
    auto tokens = ParseEosTokens(generation);
    if (!tokens.ok()) return tokens.status().Annotate(path.string());
    if (!tokens->empty()) return tokens;
  }
  auto tokens = ParseEosTokens(config);
  if (!tokens.ok()) return tokens.status().Annotate((folder / "config.json").string());
  return tokens;
}

}  // namespace octavo
