// Token sequences by their common beginnings: what several share is one node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/token_id.h"

namespace octavo {

// Tokens [begin, end) of the sequences order[first .. last - 1], which are equal up to `end`.
struct PrefixNode {
  int64_t begin;
  int64_t end;
  int64_t first;
  int64_t last;
  std::vector<PrefixNode> children;  // what follows; sequences that end here have none
};

struct PrefixTree {
  std::vector<int64_t> order;     // of the sequences, sorted by their tokens
  std::vector<PrefixNode> roots;  // begin is 0
};

// Sequences that share fewer than `min_shared` >= 1 further tokens get nodes of their own.
PrefixTree BuildPrefixTree(std::span<const std::span<const TokenId>> sequences, int64_t min_shared);

}  // namespace octavo
