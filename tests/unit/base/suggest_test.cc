#include "base/suggest.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace octavo {
namespace {

const std::vector<std::string> kModifiers = {"GPTQModifier", "AWQModifier", "SmoothQuantModifier"};

TEST(NearestName, ForgivesTyposAndCase) {
  EXPECT_EQ(NearestName("GTPQModifier", kModifiers), "GPTQModifier");
  EXPECT_EQ(NearestName("smoothquantmodifier", kModifiers), "SmoothQuantModifier");
  EXPECT_EQ(NearestName("AWQModifer", kModifiers), "AWQModifier");
}

TEST(NearestName, FindsWhatWasCutShort) {
  const std::vector<std::string> keys = {"damp", "dampening_frac", "block_size"};
  EXPECT_EQ(NearestName("dampening", keys), "dampening_frac");
  EXPECT_EQ(NearestName("bl", keys), "");
}

TEST(NearestName, IsEmptyWhenNoneIsNear) {
  EXPECT_EQ(NearestName("PruningThing", kModifiers), "");
  EXPECT_EQ(NearestName("", kModifiers), "");
  EXPECT_EQ(NearestName("GPTQModifier", {}), "");
  EXPECT_EQ(NearestName("ab", std::vector<std::string>{"xy", "z"}), "");
}

TEST(NearestName, TakesNoTimeForAVeryLongName) {
  EXPECT_EQ(NearestName(std::string(100'000'000, 'x'), kModifiers), "");
}

TEST(DidYouMean, IsAppendedToAMessage) {
  EXPECT_EQ(DidYouMean("AWQmodifier", kModifiers), " (did you mean \"AWQModifier\"?)");
  EXPECT_EQ(DidYouMean("nothing like it", kModifiers), "");
}

}  // namespace
}  // namespace octavo
