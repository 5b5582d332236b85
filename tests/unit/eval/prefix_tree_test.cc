// Sequences by their common beginnings: every token of every sequence is in the tree, once.
#include "eval/prefix_tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

using Sequences = std::vector<std::vector<TokenId>>;

PrefixTree Build(const Sequences& sequences, int64_t min_shared) {
  const std::vector<std::span<const TokenId>> spans(sequences.begin(), sequences.end());
  return BuildPrefixTree(spans, min_shared);
}

// What the nodes on the way to each sequence spell.
void Spell(const std::vector<PrefixNode>& nodes, const PrefixTree& tree, const Sequences& sequences,
           Sequences* spelt) {
  for (const PrefixNode& node : nodes) {
    for (int64_t place = node.first; place < node.last; ++place) {
      const auto index = static_cast<size_t>(tree.order[static_cast<size_t>(place)]);
      const auto first = static_cast<size_t>(tree.order[static_cast<size_t>(node.first)]);
      ASSERT_EQ(std::ssize((*spelt)[index]), node.begin);
      for (int64_t at = node.begin; at < node.end; ++at)
        (*spelt)[index].push_back(sequences[first].at(static_cast<size_t>(at)));
    }
    Spell(node.children, tree, sequences, spelt);
  }
}

void ExpectSpelling(const Sequences& sequences, int64_t min_shared) {
  const PrefixTree tree = Build(sequences, min_shared);
  Sequences spelt(sequences.size());
  Spell(tree.roots, tree, sequences, &spelt);
  EXPECT_EQ(spelt, sequences);
}

TEST(PrefixTree, SpellsEverySequence) {
  const Sequences sequences = {{1, 2, 3, 4},    {1, 2, 3},    {1, 2, 3, 5, 6}, {2},
                               {1, 2, 3, 5, 7}, {1, 2, 3, 4}, {2, 2},          {1, 9}};
  for (const int64_t min_shared : {1, 2, 3, 100}) ExpectSpelling(sequences, min_shared);
}

TEST(PrefixTree, ACommonBeginningIsOneNode) {
  const PrefixTree tree = Build({{1, 2, 3, 4}, {1, 2, 3, 5}, {7, 8}, {1, 2, 3}}, 3);
  ASSERT_EQ(tree.roots.size(), 2U);
  EXPECT_EQ(tree.roots[0].end, 3);
  EXPECT_EQ(tree.roots[0].last - tree.roots[0].first, 3);
  EXPECT_EQ(tree.roots[0].children.size(), 2U);  // the third ends there
  EXPECT_TRUE(tree.roots[1].children.empty());
}

TEST(PrefixTree, ShortBeginningsAreNotShared) {
  EXPECT_EQ(Build({{1, 2, 3}, {1, 2, 4}}, 3).roots.size(), 2U);
}

TEST(PrefixTree, EqualSequencesAreOneNode) {
  const PrefixTree tree = Build({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}}, 2);
  ASSERT_EQ(tree.roots.size(), 1U);
  EXPECT_TRUE(tree.roots[0].children.empty());
}

}  // namespace
}  // namespace octavo
