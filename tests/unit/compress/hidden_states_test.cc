#include "compress/hidden_states.h"

#include <numeric>

#include "support/golden_files.h"

namespace octavo {
namespace {

class HiddenStatesTest : public ::testing::TestWithParam<bool> {
 protected:
  static std::vector<float> Rows(int64_t count, float first) {
    std::vector<float> rows(static_cast<size_t>(count * 4));
    std::iota(rows.begin(), rows.end(), first);
    return rows;
  }
  HiddenStates Make() const { return HiddenStates(folder_.path(), 5, 4, GetParam()); }
  testing::TemporaryFolder folder_;
};

TEST_P(HiddenStatesTest, WhatComesOutOfABlockGoesIntoTheNext) {
  HiddenStates hidden = Make();
  EXPECT_EQ(hidden.file_bytes(), 80);
  ASSERT_OK(hidden.Append(Rows(2, 0)));
  ASSERT_OK(hidden.Append(Rows(3, 8)));
  ASSERT_OK(hidden.Advance(0));
  std::vector<float> found(12);
  ASSERT_OK(hidden.Read(2, found));
  EXPECT_EQ(found, Rows(3, 8));
  // The new rows do not disturb what is still to be read.
  ASSERT_OK(hidden.Append(Rows(2, 100)));
  ASSERT_OK(hidden.Read(2, found));
  EXPECT_EQ(found, Rows(3, 8));
  ASSERT_OK(hidden.Append(Rows(3, 108)));
  ASSERT_OK(hidden.Advance(1));
  ASSERT_OK(hidden.Read(2, found));
  EXPECT_EQ(found, Rows(3, 108));

  ASSERT_OK(hidden.RemoveOthers());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "hidden.0"));
  HiddenStates resumed = Make();
  ASSERT_OK(resumed.Load(1));
  ASSERT_OK(resumed.Read(2, found));
  EXPECT_EQ(found, Rows(3, 108));
}

TEST_P(HiddenStatesTest, FilesOfAnotherSizeAreRefused) {
  HiddenStates hidden = Make();
  EXPECT_EQ(hidden.Load(0).code(), StatusCode::kNotFound);
  ASSERT_OK(hidden.Append(Rows(5, 0)));
  ASSERT_OK(hidden.Advance(0));
  for (const uintmax_t size : {uintmax_t{0}, uintmax_t{79}, uintmax_t{81}, uintmax_t{1} << 40}) {
    std::filesystem::resize_file(folder_.path() / "hidden.0", size);
    HiddenStates resumed = Make();
    const Status refused = resumed.Load(0);
    EXPECT_EQ(refused.code(), StatusCode::kCorruptFile) << refused.ToString();
    EXPECT_NE(refused.message().find("hidden.0"), std::string::npos) << refused.message();
  }
}

INSTANTIATE_TEST_SUITE_P(InMemoryAndNot, HiddenStatesTest, ::testing::Bool());

}  // namespace
}  // namespace octavo
