// What a Tokenizer consists of; for its own source files only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/components/component.h"
#include "text/tokenizer.h"

namespace octavo {

struct Tokenizer::State {
  // Of the parts only the model is never null.
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<PostProcessor> post_processor;
  std::unique_ptr<Decoder> decoder;

  // Added tokens that are looked for before and after normalization.
  std::optional<AddedTokenSplitter> raw_splitter;
  std::optional<AddedTokenSplitter> normalized_splitter;
  std::unordered_map<std::string, AddedToken> added;  // by content

  std::deque<std::string> normalized_contents;  // of the second kind

  // By id, the added ones too, those for normalized text in their normalized form (as the
  // tokenizers library has them); holes have no data.
  std::vector<std::string_view> tokens;
  std::vector<bool> special;  // by id
  int64_t num_tokens = 0;
  std::optional<TokenId> bos;

  const std::string_view* FindToken(TokenId id) const {
    if (id < 0 || static_cast<size_t>(id) >= tokens.size()) return nullptr;
    const std::string_view& token = tokens[static_cast<size_t>(id)];
    return token.data() == nullptr ? nullptr : &token;
  }
  bool IsSpecial(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < special.size() && special[static_cast<size_t>(id)];
  }

  // The tokens of one text, before post-processing.
  Result<Encoding> EncodeSequence(std::string_view text, int sequence) const;
  // Special tokens added, and everything joined.
  Encoding PostProcess(std::vector<Encoding> sequences, bool add_special_tokens) const;
};

}  // namespace octavo
