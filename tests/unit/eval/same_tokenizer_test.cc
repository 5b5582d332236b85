#include "eval/same_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;

const std::filesystem::path kStories =
    std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";

Value StoriesTokenizer() {
  return ParseJson(ReadFile(kStories / "tokenizer.json").value(), "tokenizer.json").value();
}

// Of a checkpoint with this tokenizer, against stories260k.
Status Check(const Value& tokenizer) {
  const TemporaryFolder folder;
  EXPECT_TRUE(WriteFileAtomically(folder.path() / "tokenizer.json", WriteJson(tokenizer)).ok());
  return CheckSameTokenizer(kStories, folder.path(), "Once upon a time, there was a girl",
                            NullLogger());
}

TEST(SameTokenizer, TheSameInOtherBytesIsTheSame) {
  EXPECT_TRUE(Check(StoriesTokenizer()).ok());
}

TEST(SameTokenizer, TheFirstTokenThatDiffersIsNamedWithBothTexts) {
  Value changed = StoriesTokenizer();
  auto& vocabulary = changed.Find("model")->Find("vocab")->as_object();
  auto& [first, first_id] = vocabulary.at(400);
  auto& [second, second_id] = vocabulary.at(402);
  std::swap(first_id, second_id);
  const int64_t id = std::min(first_id.as_int(), second_id.as_int());
  const bool swapped = id == first_id.as_int();
  const std::string message = Check(changed).message();
  EXPECT_NE(
      message.find("token " + std::to_string(id) + " is " + JsonString(swapped ? second : first) +
                   " there and " + JsonString(swapped ? first : second) + " here"),
      std::string::npos)
      << message;
}

TEST(SameTokenizer, WhatReadsTheTextOtherwiseIsRefused) {
  // The same vocabulary without its first merges: words fall into other pieces.
  Value changed = StoriesTokenizer();
  auto& merges = changed.Find("model")->Find("merges")->as_array();
  merges.erase(merges.begin(), merges.begin() + 40);
  const Status status = Check(changed);
  EXPECT_NE(status.message().find("of the text is token"), std::string::npos) << status.ToString();
}

TEST(SameTokenizer, WithoutOneTheBasesIsTaken) {
  const TemporaryFolder folder;
  EXPECT_TRUE(CheckSameTokenizer(kStories, folder.path(), "", NullLogger()).ok());
}

}  // namespace
}  // namespace octavo
