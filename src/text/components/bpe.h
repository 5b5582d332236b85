// Merges: which two tokens join into which, and how early.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/token_id.h"

namespace octavo {

// A hash table with open addressing that never shrinks: merging looks up every neighbouring pair.
class MergeTable {
 public:
  struct Merge {
    int32_t rank;  // smaller joins first
    TokenId result;
  };

  explicit MergeTable(size_t max_merges);
  // A pair that is there already gets the new merge. At most `max_merges` pairs.
  void Insert(TokenId left, TokenId right, Merge merge);
  // Null where the two do not join. Ids are never negative.
  const Merge* Find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge = {};
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;
  static uint64_t Key(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  // The slot that holds `key`, or the empty one where it belongs.
  size_t SlotOf(uint64_t key) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
};

}  // namespace octavo
