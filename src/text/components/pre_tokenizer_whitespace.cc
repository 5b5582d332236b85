// Whitespace: runs of word characters, and runs of what is neither that nor white space.
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

class WhitespacePreTokenizer : public PreTokenizer {
 public:
  Status PreTokenize(PiecedText& text) const override {
    std::vector<ByteRange> pieces;
    const std::string_view bytes = text.text.bytes();
    for (const ByteRange& piece : text.pieces) {
      Kind last = Kind::kSpace;
      for (size_t i = piece.begin; i < piece.end;) {
        const size_t end = i + Utf8Length(bytes[i]);
        const Kind kind = KindOf(DecodeUtf8(bytes, i));
        if (kind == last && kind != Kind::kSpace) {
          pieces.back().end = end;
        } else if (kind != Kind::kSpace) {
          pieces.push_back({i, end});
        }
        last = kind;
        i = end;
      }
    }
    text.pieces = std::move(pieces);
    return OkStatus();
  }

 private:
  enum class Kind { kSpace, kWord, kOther };
  static Kind KindOf(char32_t character) {
    if (IsWordCharacter(character)) return Kind::kWord;
    return IsWhiteSpace(character) ? Kind::kSpace : Kind::kOther;
  }
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> MakeWhitespacePreTokenizer(const Value&, int) {
  return std::unique_ptr<PreTokenizer>(new WhitespacePreTokenizer);
}

}  // namespace octavo
