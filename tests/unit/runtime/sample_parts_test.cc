#include "runtime/sample_parts.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(CutIntoParts, SamplesStayWholeAndInOrder) {
  const std::vector<std::vector<TokenId>> samples = {
      std::vector<TokenId>(600, 1), std::vector<TokenId>(400, 2), std::vector<TokenId>(100, 3),
      std::vector<TokenId>(2000, 4)};
  const std::vector<SamplePart> parts = CutIntoParts(samples);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].batch.rows(), 1000);
  EXPECT_EQ(parts[0].sequences, 2);
  EXPECT_EQ(parts[0].batch.position[600], 0) << "each sample begins anew";
  EXPECT_EQ(parts[0].batch.sequence[600], 1);
  EXPECT_EQ(parts[1].first_row, 1000);
  EXPECT_EQ(parts[2].first_row, 1100);
  EXPECT_EQ(parts[2].batch.rows(), 2000) << "longer than a pass: one of its own";
  EXPECT_TRUE(CutIntoParts({}).empty());
}

}  // namespace
}  // namespace octavo
