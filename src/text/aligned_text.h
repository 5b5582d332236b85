// AlignedText: a text on its way to the model, each byte of which knows where in the original it
// came from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace octavo {

// Code points of the original text, [begin, end).
struct Origin {
  int32_t begin = 0;
  int32_t end = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

// A range of bytes, [begin, end).
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

// A character of a rewritten text, and how it relates to what it replaces (as the tokenizers
// library counts): 0 replaces the next character, n > 0 is inserted (and has the origin of the byte
// before it), -n replaces the next character and swallows n more.
struct CharacterChange {
  char32_t character;
  int change;
};

class AlignedText {
 public:
  AlignedText() = default;
  // Valid UTF-8, whose first character is number `first_code_point` of the original.
  AlignedText(std::string_view text, int32_t first_code_point);

  std::string_view bytes() const { return bytes_; }
  std::string_view bytes(ByteRange range) const {
    return bytes().substr(range.begin, range.end - range.begin);
  }
  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size(); }

  // Where bytes [begin, end) came from. An empty range has no characters: it lies where the byte at
  // `begin` begins.
  Origin OriginOf(size_t begin, size_t end) const;

  void Reserve(size_t num_bytes);
  void Append(std::string_view text, Origin origin);
  void AppendRange(const AlignedText& other, ByteRange range);
  AlignedText Slice(ByteRange range) const;
  // Puts `prefix` in front, with the origin of the first character. No effect on an empty text.
  void Prepend(std::string_view prefix);
  // The text that `changes` make of this one.
  AlignedText Rewritten(std::span<const CharacterChange> changes) const;

 private:
  std::string bytes_;
  std::vector<Origin> origins_;  // one a byte
};

// A text cut into pieces, in order and without overlap; what lies between pieces is dropped.
struct PiecedText {
  AlignedText text;
  std::vector<ByteRange> pieces;
};

// InvalidArgument when a text grew beyond what any real normalization makes of it: 32 times, and a
// MiB. So a hostile tokenizer.json cannot make a short text fill the memory.
Status CheckGrowth(size_t original_bytes, size_t grown_bytes);

}  // namespace octavo
