#include "eval/prefix_tree.h"

#include <algorithm>
#include <numeric>

namespace octavo {

namespace {

class Builder {
 public:
  Builder(std::span<const std::span<const TokenId>> sequences, int64_t min_shared)
      : sequences_(sequences), min_shared_(min_shared), order_(sequences.size()) {
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
      return std::lexicographical_compare(Tokens(a).begin(), Tokens(a).end(), Tokens(b).begin(),
                                          Tokens(b).end());
    });
    // shared_[i]: how much the sequence in place i has in common with the one before.
    shared_.assign(order_.size(), 0);
    for (size_t i = 1; i < order_.size(); ++i) {
      const auto before = Tokens(order_[i - 1]);
      const auto here = Tokens(order_[i]);
      shared_[i] = std::mismatch(before.begin(), before.end(), here.begin(), here.end()).first -
                   before.begin();
    }
  }

  PrefixTree Build() {
    PrefixTree tree;
    tree.roots = Split(0, std::ssize(order_), 0);
    tree.order = std::move(order_);
    return tree;
  }

 private:
  std::span<const TokenId> Tokens(int64_t index) const {
    return sequences_[static_cast<size_t>(index)];
  }
  int64_t Shared(int64_t place) const { return shared_[static_cast<size_t>(place)]; }

  // Nodes of what lies behind `depth` of the sequences in places [first, last).
  std::vector<PrefixNode> Split(int64_t first, int64_t last, int64_t depth) const {
    std::vector<PrefixNode> nodes;
    for (int64_t begin = first; begin < last;) {
      int64_t end = begin + 1;
      int64_t common = std::ssize(Tokens(order_[static_cast<size_t>(begin)]));
      if (common == depth) {  // ends with the node above
        begin = end;
        continue;
      }
      for (; end < last && Shared(end) >= depth + min_shared_; ++end)
        common = std::min(common, Shared(end));
      nodes.push_back({depth, common, begin, end, {}});
      if (end - begin > 1) nodes.back().children = Split(begin, end, common);
      begin = end;
    }
    return nodes;
  }

  std::span<const std::span<const TokenId>> sequences_;
  int64_t min_shared_;
  std::vector<int64_t> order_;
  std::vector<int64_t> shared_;
};

}  // namespace

PrefixTree BuildPrefixTree(std::span<const std::span<const TokenId>> sequences,
                           int64_t min_shared) {
  return Builder(sequences, min_shared).Build();
}

}  // namespace octavo
