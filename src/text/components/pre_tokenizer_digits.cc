// Digits: numbers apart from the rest, whole or digit by digit.
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

class DigitsPreTokenizer : public PreTokenizer {
 public:
  explicit DigitsPreTokenizer(bool individual) : individual_(individual) {}

  Status PreTokenize(PiecedText& text) const override {
    std::vector<ByteRange> pieces;
    const std::string_view bytes = text.text.bytes();
    for (const ByteRange& piece : text.pieces) {
      bool was_digit = false;
      size_t begin = piece.begin;
      for (size_t i = piece.begin; i < piece.end; i += Utf8Length(bytes[i])) {
        const bool is_digit = IsNumeric(DecodeUtf8(bytes, i));
        if (is_digit != was_digit || (is_digit && individual_)) {
          if (begin < i) pieces.push_back({begin, i});
          begin = i;
        }
        was_digit = is_digit;
      }
      if (begin < piece.end) pieces.push_back({begin, piece.end});
    }
    text.pieces = std::move(pieces);
    return OkStatus();
  }

 private:
  bool individual_;
};

}  // namespace

Result<std::unique_ptr<PreTokenizer>> MakeDigitsPreTokenizer(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(const bool individual, config.GetBool("individual_digits", false));
  return std::unique_ptr<PreTokenizer>(new DigitsPreTokenizer(individual));
}

}  // namespace octavo
