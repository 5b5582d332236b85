// Lowercase: each character for itself (Rust's char::to_lowercase), so no final sigma.
#include <utf8proc.h>

#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

class LowercaseNormalizer : public Normalizer {
 public:
  Status Normalize(AlignedText& text) const override {
    std::vector<CharacterChange> changes;
    const std::string_view bytes = text.bytes();
    for (size_t i = 0; i < bytes.size(); i += Utf8Length(bytes[i])) {
      const char32_t character = DecodeUtf8(bytes, i);
      if (character == 0x130) {  // the one that becomes two: i with a dot above
        changes.push_back({U'i', 0});
        changes.push_back({0x307, 1});
        continue;
      }
      const auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(character));
      changes.push_back({static_cast<char32_t>(lower), 0});
    }
    text = text.Rewritten(changes);
    return OkStatus();
  }
};

}  // namespace

Result<std::unique_ptr<Normalizer>> MakeLowercaseNormalizer(const Value&, int) {
  return std::unique_ptr<Normalizer>(new LowercaseNormalizer);
}

}  // namespace octavo
