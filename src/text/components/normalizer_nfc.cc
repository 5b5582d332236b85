// NFC: canonical decomposition, marks in their order, canonical composition.
#include <utf8proc.h>

#include <algorithm>
#include <map>

#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

// Below it every character is its own normal form and none is a mark.
constexpr char32_t kFirstMark = 0x300;

int MarkClass(char32_t character) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(character))->combining_class;
}

void Decompose(char32_t character, std::vector<CharacterChange>& out) {
  if (character < 0x80) {
    out.push_back({character, 0});
    return;
  }
  utf8proc_int32_t parts[8];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character), parts, 8,
                                             UTF8PROC_DECOMPOSE, &boundary);
  OCTAVO_CHECK(count >= 1 && count <= 8);
  for (int i = 0; i < count; ++i) {
    out.push_back({static_cast<char32_t>(parts[i]), i > 0 ? 1 : 0});
  }
}

// The one character that the pair makes, or 0.
char32_t Compose(char32_t first, char32_t second) {
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first),
                              static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair, 2, options) != 1) return 0;
  return static_cast<char32_t>(pair[0]);
}

// Composes decomposed text in place (UAX 15). A composed character swallows its parts: each takes
// one from the change.
void ComposeAll(std::vector<CharacterChange>& text) {
  size_t out = 0;
  size_t starter = SIZE_MAX;  // in the output
  int last_class = 0;         // of what stands between the starter and here, 0: nothing
  for (const CharacterChange item : std::vector<CharacterChange>(text)) {
    const int mark = MarkClass(item.character);
    const bool blocked = starter == SIZE_MAX || (last_class != 0 && last_class >= mark);
    const char32_t composed = blocked ? 0 : Compose(text[starter].character, item.character);
    if (composed != 0) {
      text[starter] = {composed, text[starter].change + item.change - 1};
      continue;
    }
    if (mark == 0) {
      starter = out;
      last_class = 0;
    } else {
      last_class = mark;
    }
    text[out++] = item;
  }
  text.resize(out);
}

class NfcNormalizer : public Normalizer {
 public:
  Status Normalize(AlignedText& text) const override {
    const std::string_view bytes = text.bytes();
    const bool plain = std::none_of(bytes.begin(), bytes.end(), [](char byte) {
      return static_cast<unsigned char>(byte) >= 0xCC;  // leads of U+0300 and above
    });
    if (plain) return OkStatus();
    std::vector<CharacterChange> result;
    std::vector<CharacterChange> run;  // from a character that nothing before it can change
    for (size_t i = 0; i < bytes.size(); i += Utf8Length(bytes[i])) {
      const char32_t character = DecodeUtf8(bytes, i);
      if (character < kFirstMark) FlushRun(run, result);
      Decompose(character, run);
    }
    FlushRun(run, result);
    text = text.Rewritten(result);
    return OkStatus();
  }

 private:
  static void FlushRun(std::vector<CharacterChange>& run, std::vector<CharacterChange>& result) {
    if (run.size() > 1) {
      SortMarks(run);
      ComposeAll(run);
    }
    result.insert(result.end(), run.begin(), run.end());
    run.clear();
  }

  static void SortMarks(std::vector<CharacterChange>& run) {
    for (auto begin = run.begin(); begin != run.end();) {
      if (MarkClass(begin->character) == 0) {
        ++begin;
        continue;
      }
      const auto end = std::find_if(
          begin, run.end(), [](const auto& item) { return MarkClass(item.character) == 0; });
      // By class, equal ones in their order: what a multimap does.
      std::multimap<int, CharacterChange> sorted;
      for (auto item = begin; item != end; ++item) {
        sorted.emplace(MarkClass(item->character), *item);
      }
      for (const auto& [mark_class, item] : sorted) *begin++ = item;
    }
  }
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeNfcNormalizer(const Value&, int) {
  return std::unique_ptr<Normalizer>(new NfcNormalizer);
}

}  // namespace octavo
