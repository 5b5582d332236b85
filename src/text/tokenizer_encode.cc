// Text to token ids: added tokens are cut out, what lies between them is normalized, cut into
// pre-tokens and given to the model; the post-processor puts special tokens around the result.
#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer_state.h"
#include "text/unicode.h"

namespace octavo {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;  // so that positions fit int32, grown text too

// Remembers the tokens of short pre-tokens for the time of one call: most of a text is repetition.
class PieceCache {
 public:
  static constexpr size_t kMaxPieceBytes = 64;

  explicit PieceCache(const TokenModel& model) : model_(model) {}

  // Valid until the next call.
  std::span<const ModelToken> Tokenize(std::string_view piece) {
    if (piece.size() > kMaxPieceBytes) {
      long_piece_.clear();
      model_.Tokenize(piece, long_piece_);
      return long_piece_;
    }
    key_ = piece;
    auto found = ranges_.find(key_);
    if (found == ranges_.end()) {
      if (ranges_.size() == kMaxPieces) Clear();
      const size_t begin = tokens_.size();
      model_.Tokenize(piece, tokens_);
      found = ranges_.emplace(key_, ByteRange{begin, tokens_.size()}).first;
    }
    const ByteRange range = found->second;
    return std::span(tokens_).subspan(range.begin, range.end - range.begin);
  }

 private:
  static constexpr size_t kMaxPieces = 1 << 16;

  void Clear() {
    ranges_.clear();
    tokens_.clear();
  }

  const TokenModel& model_;
  std::string key_;
  std::unordered_map<std::string, ByteRange> ranges_;  // of tokens_
  std::vector<ModelToken> tokens_;
  std::vector<ModelToken> long_piece_;
};

// Collects the tokens of one text.
class SequenceEncoder {
 public:
  SequenceEncoder(const Tokenizer::State& state, Encoding& out)
      : state_(state), cache_(*state.model), out_(out) {}

  Status Encode(std::string_view text) {
    if (text.size() > kMaxTextBytes) {
      return InvalidArgument(fmt::format("the text has {} bytes; at most {} can be encoded at once",
                                         text.size(), kMaxTextBytes));
    }
    OCTAVO_RETURN_IF_ERROR(CheckUtf8(text));
    int32_t code_point = 0;
    for (const auto& part : Split(state_.raw_splitter, text)) {
      const std::string_view bytes =
          text.substr(part.range.begin, part.range.end - part.range.begin);
      const auto end = static_cast<int32_t>(code_point + CountCodePoints(bytes));
      if (part.token != nullptr) {
        Append(part.token->id, bytes, {code_point, end});
      } else {
        OCTAVO_RETURN_IF_ERROR(EncodeRaw(AlignedText(bytes, code_point)));
      }
      code_point = end;
    }
    return OkStatus();
  }

 private:
  using Parts = std::vector<AddedTokenSplitter::Part>;

  static Parts Split(const std::optional<AddedTokenSplitter>& splitter, std::string_view text) {
    if (splitter) return splitter->Split(text);
    return text.empty() ? Parts() : Parts{{{0, text.size()}, nullptr}};
  }

  Status EncodeRaw(AlignedText text) {
    if (state_.normalizer) OCTAVO_RETURN_IF_ERROR(state_.normalizer->Normalize(text));
    const Parts parts = Split(state_.normalized_splitter, text.bytes());
    if (parts.size() == 1 && parts[0].token == nullptr) return EncodeNormalized(std::move(text));
    for (const auto& part : parts) {
      if (part.token != nullptr) {
        Append(part.token->id, text.bytes(part.range),
               text.OriginOf(part.range.begin, part.range.end));
      } else {
        OCTAVO_RETURN_IF_ERROR(EncodeNormalized(text.Slice(part.range)));
      }
    }
    return OkStatus();
  }

  Status EncodeNormalized(AlignedText text) {
    PiecedText pieced;
    pieced.pieces = {{0, text.size()}};
    pieced.text = std::move(text);
    if (state_.pre_tokenizer) OCTAVO_RETURN_IF_ERROR(state_.pre_tokenizer->PreTokenize(pieced));
    for (const ByteRange& piece : pieced.pieces) EncodePiece(pieced.text, piece);
    return OkStatus();
  }

  void EncodePiece(const AlignedText& text, ByteRange piece) {
    parts_.clear();
    if (piece.end - piece.begin > PieceCache::kMaxPieceBytes) {
      state_.model->Cut(text.bytes(piece), parts_);
    } else {
      parts_.push_back({0, piece.end - piece.begin});
    }
    for (const ByteRange& part : parts_) {
      const size_t origin = piece.begin + part.begin;
      for (const ModelToken& token :
           cache_.Tokenize(text.bytes({origin, piece.begin + part.end}))) {
        // Byte tokens of a character with a prefix can count more bytes than there are.
        const size_t begin = std::min(origin + static_cast<size_t>(token.begin), piece.end);
        const size_t end = std::min(origin + static_cast<size_t>(token.end), piece.end);
        Append(token.id, *state_.FindToken(token.id), text.OriginOf(begin, end));
      }
    }
  }

  void Append(TokenId id, std::string_view token, Origin origin) {
    out_.ids.push_back(id);
    out_.tokens.emplace_back(token);
    out_.offsets.emplace_back(origin.begin, origin.end);
  }

  const Tokenizer::State& state_;
  PieceCache cache_;
  std::vector<ByteRange> parts_;
  Encoding& out_;
};

template <typename T>
void Extend(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

Result<Encoding> Tokenizer::State::EncodeSequence(std::string_view text, int sequence) const {
  Encoding out;
  OCTAVO_RETURN_IF_ERROR(SequenceEncoder(*this, out).Encode(text));
  out.type_ids.assign(out.ids.size(), sequence);
  out.special_tokens_mask.assign(out.ids.size(), 0);
  out.sequence_ids.assign(out.ids.size(), sequence);
  return out;
}

Encoding Tokenizer::State::PostProcess(std::vector<Encoding> sequences,
                                       bool add_special_tokens) const {
  if (post_processor) sequences = post_processor->Process(std::move(sequences), add_special_tokens);
  if (sequences.empty()) return {};
  Encoding out = std::move(sequences.front());
  for (size_t i = 1; i < sequences.size(); ++i) {
    Extend(out.ids, sequences[i].ids);
    Extend(out.tokens, sequences[i].tokens);
    Extend(out.offsets, sequences[i].offsets);
    Extend(out.type_ids, sequences[i].type_ids);
    Extend(out.special_tokens_mask, sequences[i].special_tokens_mask);
    Extend(out.sequence_ids, sequences[i].sequence_ids);
  }
  return out;
}

Result<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                               bool add_special_tokens) const {
  OCTAVO_ASSIGN_OR_RETURN(Encoding encoding, EncodeWithOffsets(text, add_special_tokens));
  return std::move(encoding.ids);
}

Result<Encoding> Tokenizer::EncodeWithOffsets(std::string_view text,
                                              bool add_special_tokens) const {
  std::vector<Encoding> sequences(1);
  OCTAVO_ASSIGN_OR_RETURN(sequences[0], state_->EncodeSequence(text, 0));
  return state_->PostProcess(std::move(sequences), add_special_tokens);
}

Result<Encoding> Tokenizer::EncodePair(std::string_view first, std::string_view second,
                                       bool add_special_tokens) const {
  std::vector<Encoding> sequences(2);
  OCTAVO_ASSIGN_OR_RETURN(sequences[0], state_->EncodeSequence(first, 0));
  OCTAVO_ASSIGN_OR_RETURN(sequences[1], state_->EncodeSequence(second, 1));
  return state_->PostProcess(std::move(sequences), add_special_tokens);
}

}  // namespace octavo
