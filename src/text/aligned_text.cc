#include "text/aligned_text.h"

#include <fmt/format.h>

#include "text/unicode.h"

namespace octavo {

AlignedText::AlignedText(std::string_view text, int32_t first_code_point) : bytes_(text) {
  origins_.reserve(text.size());
  int32_t next = first_code_point;
  for (const char byte : text) {
    if (!IsUtf8Continuation(byte)) ++next;
    origins_.push_back({next - 1, next});
  }
}

Origin AlignedText::OriginOf(size_t begin, size_t end) const {
  if (origins_.empty()) return {};
  if (begin == origins_.size()) return {origins_.back().end, origins_.back().end};
  if (begin == end) return {origins_[begin].begin, origins_[begin].begin};
  return {origins_[begin].begin, origins_[end - 1].end};
}

void AlignedText::Reserve(size_t num_bytes) {
  bytes_.reserve(num_bytes);
  origins_.reserve(num_bytes);
}

void AlignedText::Append(std::string_view text, Origin origin) {
  bytes_ += text;
  origins_.insert(origins_.end(), text.size(), origin);
}

void AlignedText::AppendRange(const AlignedText& other, ByteRange range) {
  bytes_ += other.bytes(range);
  const auto begin = other.origins_.begin();
  origins_.insert(origins_.end(), begin + static_cast<std::ptrdiff_t>(range.begin),
                  begin + static_cast<std::ptrdiff_t>(range.end));
}

AlignedText AlignedText::Slice(ByteRange range) const {
  AlignedText slice;
  slice.AppendRange(*this, range);
  return slice;
}

void AlignedText::Prepend(std::string_view prefix) {
  if (empty()) return;
  bytes_.insert(0, prefix);
  origins_.insert(origins_.begin(), prefix.size(), origins_.front());
}

AlignedText AlignedText::Rewritten(std::span<const CharacterChange> changes) const {
  AlignedText out;
  out.Reserve(size());
  size_t next = 0;  // byte of this text that the next replacing character takes
  std::string character;
  for (const CharacterChange& item : changes) {
    Origin origin;
    if (item.change > 0) {
      origin = next > 0 ? origins_[next - 1] : OriginOf(0, 0);
    } else {
      OCTAVO_CHECK(next < size());
      origin = origins_[next];
      for (int i = 0; i <= -item.change && next < size(); ++i) next += Utf8Length(bytes_[next]);
    }
    character.clear();
    AppendUtf8(item.character, character);
    out.Append(character, origin);
  }
  return out;
}

Status CheckGrowth(size_t original_bytes, size_t grown_bytes) {
  if (grown_bytes <= original_bytes * 32 + (size_t{1} << 20)) return OkStatus();
  return InvalidArgument(fmt::format(
      "the normalizer makes more than {} bytes out of a text of {}; look for a long \"content\" or "
      "\"prepend\" in tokenizer.json",
      grown_bytes, original_bytes));
}

}  // namespace octavo
