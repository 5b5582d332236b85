// ByteLevel: takes the spaces out of offsets, and nothing else.
#include <algorithm>

#include "text/components/byte_level.h"
#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

bool IsSpace(char32_t character) {
  return character == ByteLevelCharacter(' ') || IsWhiteSpace(character);
}

int64_t LeadingSpaces(std::string_view token) {
  int64_t count = 0;
  for (size_t i = 0; i < token.size() && IsSpace(DecodeUtf8(token, i));) {
    i += Utf8Length(token[i]);
    ++count;
  }
  return count;
}

int64_t TrailingSpaces(std::string_view token) {
  int64_t count = 0;
  for (size_t i = token.size(); i > 0;) {
    do {
      --i;
    } while (IsUtf8Continuation(token[i]));
    if (!IsSpace(DecodeUtf8(token, i))) break;
    ++count;
  }
  return count;
}

class ByteLevelPostProcessor : public PostProcessor {
 public:
  ByteLevelPostProcessor(bool trim_offsets, bool add_prefix_space)
      : trim_offsets_(trim_offsets), add_prefix_space_(add_prefix_space) {}

  std::vector<Encoding> Process(std::vector<Encoding> sequences, bool) const override {
    if (!trim_offsets_) return sequences;
    for (Encoding& sequence : sequences) {
      for (size_t i = 0; i < sequence.ids.size(); ++i) {
        Trim(sequence.tokens[i], i == 0, sequence.offsets[i]);
      }
    }
    return sequences;
  }

 private:
  void Trim(std::string_view token, bool is_first, std::pair<int64_t, int64_t>& offsets) const {
    auto& [begin, end] = offsets;
    int64_t leading = LeadingSpaces(token);
    const int64_t trailing = TrailingSpaces(token);
    // The first space of the text may be the one that the pre-tokenizer added.
    if (leading > 0 && add_prefix_space_ && (is_first || begin == 0)) --leading;
    begin = std::min(begin + leading, end);
    if (trailing > 0 && end >= trailing) end = std::max(end - trailing, begin);
  }

  bool trim_offsets_;
  bool add_prefix_space_;
};

}  // namespace

Result<std::unique_ptr<PostProcessor>> MakeByteLevelPostProcessor(const Value& config, int) {
  OCTAVO_ASSIGN_OR_RETURN(const bool trim, config.GetBool("trim_offsets", true));
  OCTAVO_ASSIGN_OR_RETURN(const bool prefix, config.GetBool("add_prefix_space", true));
  return std::unique_ptr<PostProcessor>(new ByteLevelPostProcessor(trim, prefix));
}

}  // namespace octavo
