// ByteLevel: GPT-2's words, their bytes written as visible characters.
#include <optional>

#include "text/components/byte_level.h"
#include "text/components/component.h"
#include "text/components/pattern.h"
#include "text/unicode.h"

namespace octavo {
namespace {

constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, std::optional<Pattern> words)
      : add_prefix_space_(add_prefix_space), words_(std::move(words)) {
    for (int byte = 0; byte < 256; ++byte) {
      AppendUtf8(ByteLevelCharacter(static_cast<uint8_t>(byte)), characters_[byte]);
    }
  }

  Status PreTokenize(PiecedText& text) const override {
    if (add_prefix_space_) AddPrefixSpaces(text);
    if (words_) OCTAVO_RETURN_IF_ERROR(SplitWords(text));
    SpellBytes(text);
    return OkStatus();
  }

 private:
  static void AddPrefixSpaces(PiecedText& text) {
    PiecedText out;
    out.text.Reserve(text.text.size() + text.pieces.size());
    for (const ByteRange& piece : text.pieces) {
      const size_t begin = out.text.size();
      if (text.text.bytes(piece)[0] != ' ') {
        out.text.Append(" ", text.text.OriginOf(piece.begin, piece.begin + 1));
      }
      out.text.AppendRange(text.text, piece);
      out.pieces.push_back({begin, out.text.size()});
    }
    text = std::move(out);
  }

  Status SplitWords(PiecedText& text) const {
    Pattern::Searcher searcher(*words_);
    std::vector<ByteRange> matches;
    std::vector<ByteRange> pieces;
    for (const ByteRange& piece : text.pieces) {
      OCTAVO_RETURN_IF_ERROR(searcher.FindAll(text.text.bytes(piece), matches));
      SplitPiece(piece, matches, SplitBehavior::kIsolated, false, pieces);
    }
    text.pieces = std::move(pieces);
    return OkStatus();
  }

  // Each byte has the origin of its whole character.
  void SpellBytes(PiecedText& text) const {
    AlignedText out;
    out.Reserve(text.text.size() * 2);
    for (ByteRange& piece : text.pieces) {
      const size_t begin = out.size();
      for (size_t i = piece.begin; i < piece.end; ++i) {
        const auto byte = static_cast<unsigned char>(text.text.bytes()[i]);
        out.Append(characters_[byte], text.text.OriginOf(i, i + 1));
      }
      piece = {begin, out.size()};
    }
    text.text = std::move(out);
  }

  bool add_prefix_space_;
  std::optional<Pattern> words_;
  std::string characters_[256];
};

}  // namespace

// "trim_offsets" acts only in the post-processor.
Result<std::unique_ptr<PreTokenizer>> MakeByteLevelPreTokenizer(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(const bool prefix, config.GetBool("add_prefix_space", true));
  OCTAVO_ASSIGN_OR_RETURN(const bool use_regex, config.GetBool("use_regex", true));
  std::optional<Pattern> words;
  if (use_regex) {
    OCTAVO_ASSIGN_OR_RETURN(words, Pattern::FromRegex(kGpt2Words));
  }
  return std::unique_ptr<PreTokenizer>(new ByteLevelPreTokenizer(prefix, std::move(words)));
}

}  // namespace octavo
