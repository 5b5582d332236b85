// A Hugging Face tokenizer (tokenizer.json): text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "text/token_id.h"

namespace octavo {

// What the encoder knows of each token. Offsets are code points of the original text, [begin, end).
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;
  std::vector<std::pair<int64_t, int64_t>> offsets;
  std::vector<int> type_ids;
  std::vector<int> special_tokens_mask;
  std::vector<int> sequence_ids;  // 0, 1, or -1 for special tokens
};

class Tokenizer {
 public:
  struct State;  // opaque

  // Reads folder/tokenizer.json, of at most 64 MB. Unsupported names a component that is not
  // implemented; CorruptFile names what is wrong, and where in the file. The file's "truncation"
  // and "padding" are not applied: transformers, too, replaces them by what a call asks for.
  static Result<Tokenizer> Load(const std::filesystem::path& folder);
  // From the parsed tokenizer.json alone; `what` names it in messages.
  static Result<Tokenizer> FromJson(const Value& json, std::string_view what);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // `text` is UTF-8; invalid bytes are InvalidArgument with their position. Time is linear in the
  // text, up to the logarithm that merging costs within one pre-token. All const members may be
  // called from several threads at once.
  Result<std::vector<TokenId>> Encode(std::string_view text, bool add_special_tokens) const;
  Result<Encoding> EncodeWithOffsets(std::string_view text, bool add_special_tokens) const;
  Result<Encoding> EncodePair(std::string_view first, std::string_view second,
                              bool add_special_tokens) const;

  // Unknown ids decode to nothing.
  std::string Decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  int64_t vocab_size() const;  // number of tokens, with added ones
  std::optional<TokenId> TokenToId(std::string_view token) const;
  std::optional<std::string> IdToToken(TokenId id) const;
  bool IsSpecial(TokenId id) const;

  // Whether Encode(..., true) puts a BOS in front, and which.
  std::optional<TokenId> bos_added_by_encode() const;

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Decodes one token after another and never emits half a character. All that is emitted, and then
// flushed, is what Decode makes of all ids at once; U+FFFD waits until something follows it. Only
// where byte-fallback tokens turn out to be no UTF-8 after some of their run was emitted is that
// not possible: from there on each wrong part becomes one U+FFFD, at once.
class StreamDecoder {
 public:
  // The tokenizer outlives the decoder and is not moved.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens);
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  // The text that became certain by this token; may be empty.
  std::string Push(TokenId id);
  // What is left when generation stops here; the last call.
  std::string Flush();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo
