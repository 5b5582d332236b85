// WhitespaceSplit: runs of what is not white space.
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

class WhitespaceSplitPreTokenizer : public PreTokenizer {
 public:
  Status PreTokenize(PiecedText& text) const override {
    std::vector<ByteRange> pieces;
    const std::string_view bytes = text.text.bytes();
    for (const ByteRange& piece : text.pieces) {
      bool was_space = true;
      for (size_t i = piece.begin; i < piece.end;) {
        const size_t end = i + Utf8Length(bytes[i]);
        const bool is_space = IsWhiteSpace(DecodeUtf8(bytes, i));
        if (!is_space && was_space) pieces.push_back({i, end});
        if (!is_space) pieces.back().end = end;
        was_space = is_space;
        i = end;
      }
    }
    text.pieces = std::move(pieces);
    return OkStatus();
  }
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> MakeWhitespaceSplitPreTokenizer(const Value&, int) {
  return std::unique_ptr<PreTokenizer>(new WhitespaceSplitPreTokenizer);
}

}  // namespace octavo
