// Metaspace: spaces become a visible character that starts words.
#include "text/components/component.h"
#include "text/components/metaspace.h"
#include "text/components/pattern.h"

namespace octavo {
namespace {

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(MetaspaceConfig config)
      : config_(std::move(config)), words_(Pattern::Literal(config_.replacement)) {}

  Status PreTokenize(PiecedText& text) const override {
    ReplaceSpaces(text);
    if (!config_.split) return OkStatus();
    Pattern::Searcher searcher(words_);
    std::vector<ByteRange> matches;
    std::vector<ByteRange> pieces;
    for (const ByteRange& piece : text.pieces) {
      OCTAVO_RETURN_IF_ERROR(searcher.FindAll(text.text.bytes(piece), matches));
      SplitPiece(piece, matches, SplitBehavior::kMergedWithNext, false, pieces);
    }
    text.pieces = std::move(pieces);
    return OkStatus();
  }

 private:
  void ReplaceSpaces(PiecedText& text) const {
    AlignedText out;
    out.Reserve(text.text.size() + text.text.size() / 2);
    for (ByteRange& piece : text.pieces) {
      const size_t begin = out.size();
      const std::string_view bytes = text.text.bytes(piece);
      const Origin first = text.text.OriginOf(piece.begin, piece.begin + 1);
      const bool marked = bytes[0] == ' ' || bytes.starts_with(config_.replacement);
      if (!marked && (config_.prepend == PrependScheme::kAlways ||
                      (config_.prepend == PrependScheme::kFirst && first.begin == 0))) {
        out.Append(config_.replacement, first);
      }
      for (size_t i = piece.begin; i < piece.end; ++i) {
        if (text.text.bytes()[i] == ' ') {
          out.Append(config_.replacement, text.text.OriginOf(i, i + 1));
        } else {
          out.AppendRange(text.text, {i, i + 1});
        }
      }
      piece = {begin, out.size()};
    }
    text.text = std::move(out);
  }

  MetaspaceConfig config_;
  Pattern words_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> MakeMetaspacePreTokenizer(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(MetaspaceConfig settings, MetaspaceConfig::FromConfig(config));
  return std::unique_ptr<PreTokenizer>(new MetaspacePreTokenizer(std::move(settings)));
}

}  // namespace octavo
