// Texts to token ids as lm-evaluation-harness splits them: contexts and continuations, prompts,
// rolling windows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer.h"

namespace octavo {

// A continuation to be scored behind its context; indices into a text's tokens are not kept.
struct TokenRequest {
  std::vector<TokenId> context;
  std::vector<TokenId> continuation;

  friend bool operator==(const TokenRequest&, const TokenRequest&) = default;
};

// What the model is fed: the last max_length + 1 of context and continuation, without the very
// last. InvalidArgument for a continuation that is longer than max_length, or empty.
struct FedTokens {
  std::vector<TokenId> tokens;
  TokenId last = 0;          // what the last row is scored by
  int64_t first_scored = 0;  // the row that predicts the first token of the continuation
  bool truncated = false;

  // What row `row` >= first_scored is scored by.
  TokenId target(int64_t row) const {
    return row + 1 < std::ssize(tokens) ? tokens[static_cast<size_t>(row + 1)] : last;
  }
};
Result<FedTokens> Feed(const TokenRequest& request, int64_t max_length);

class RequestEncoder {
 public:
  // `add_bos`: lm-eval's add_bos_token; nothing: as the tokenizer has it. `prefix` is the token
  // that stands for an empty context: BOS, else EOS.
  RequestEncoder(const Tokenizer& tokenizer, TokenId prefix, std::optional<bool> add_bos);

  // With the special tokens that the tokenizer adds, unless the text begins with the prefix token's
  // own text.
  Result<std::vector<TokenId>> Encode(std::string_view text) const;
  // The context's trailing white space (Python's) goes to the continuation, whose tokens are those
  // of the whole text behind as many as the context alone has. They may be none; Feed refuses that.
  Result<TokenRequest> EncodePair(std::string_view context, std::string_view continuation) const;

  TokenId prefix() const { return prefix_; }
  // The prefix token as text, which may be that of EOS.
  const std::string& prefix_text() const { return prefix_text_; }

 private:
  const Tokenizer& tokenizer_;
  TokenId prefix_;
  std::string prefix_text_;
  std::optional<bool> add_bos_;
};

// The windows of a text of any length: the first predicts max_length tokens from the prefix token;
// each later one has one token in front, the last as many as fit. Together they predict each token
// once.
std::vector<TokenRequest> RollingWindows(std::span<const TokenId> tokens, TokenId prefix,
                                         int64_t max_length);

// Special tokens as tokenizer_config.json names them, with config.json as the second source.
struct SpecialTokens {
  std::optional<TokenId> bos, eos, pad;
  // BOS, else EOS; InvalidArgument where there is neither.
  Result<TokenId> Prefix() const;
};
Result<SpecialTokens> ReadSpecialTokens(const std::filesystem::path& folder,
                                        const Tokenizer& tokenizer);

}  // namespace octavo
