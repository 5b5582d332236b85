#include "text/dataset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/rng.h"
#include "support/temporary_folder.h"

namespace octavo {
namespace {

const std::filesystem::path kTokenizer = OCTAVO_TEST_DATA "/tokenizers/stories260k";

using Ids = std::vector<TokenId>;

class DatasetTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const std::string& text, const std::string& name = "data.jsonl") {
    const std::filesystem::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  static DatasetOptions InOrder(int64_t num_samples, int64_t max_length = 2048) {
    DatasetOptions options;
    options.num_samples = num_samples;
    options.max_length = max_length;
    options.shuffle = false;
    return options;
  }

  std::string ErrorOf(const std::string& text) {
    const auto dataset = ReadDataset(Write(text), InOrder(8), nullptr, nullptr);
    return dataset.ok() ? "" : dataset.status().ToString();
  }

  testing::TemporaryFolder folder_;
};

void ExpectContains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

TEST_F(DatasetTest, TakesTheFirstRowsInOrderAndCutsThem) {
  const auto path = Write(
      "{\"input_ids\": [1, 2, 3]}\r\n\n  \n{\"input_ids\": []}\n{\"input_ids\": [4, 5, 6, 7]}\n"
      "{\"input_ids\": [8]}");
  const auto dataset = ReadDataset(path, InOrder(3, 3), nullptr, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(dataset->samples, (std::vector<Ids>{{1, 2, 3}, {4, 5, 6}}));
  EXPECT_EQ(dataset->rows, 4);
  EXPECT_EQ(dataset->tokens, 6);
  EXPECT_EQ(dataset->truncated, 1);
  EXPECT_EQ(dataset->skipped, 1);
}

TEST_F(DatasetTest, SkippedRowsAreThoseThatWouldHaveBeenTakenFirst) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "{\"input_ids\": [" + std::to_string(i) + "]}\n";
  const auto path = Write(text);
  for (const bool shuffle : {false, true}) {
    DatasetOptions all{.num_samples = 50, .shuffle = shuffle};
    const auto rows = ReadDataset(path, all, nullptr, nullptr)->samples;
    const DatasetOptions rest{.num_samples = 4, .shuffle = shuffle, .skip = 30};
    EXPECT_EQ(ReadDataset(path, rest, nullptr, nullptr)->samples,
              std::vector<Ids>(rows.begin() + 30, rows.begin() + 34));
    all.skip = 48;
    EXPECT_EQ(ReadDataset(path, all, nullptr, nullptr)->samples.size(), 2U);
    all.skip = 50;
    ExpectContains(ReadDataset(path, all, nullptr, nullptr).status().message(),
                   "of its 50 rows none is behind the first 50");
  }
}

TEST_F(DatasetTest, ShufflesBySeedAlone) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "{\"input_ids\": [" + std::to_string(i) + "]}\n";
  DatasetOptions options;
  options.num_samples = 10;
  options.seed = 7;
  const auto dataset = ReadDataset(Write(text), options, nullptr, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  ASSERT_EQ(dataset->samples.size(), 10U);
  const std::vector<int64_t> order = Rng(7).Permutation(50);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(dataset->samples[i], Ids{static_cast<TokenId>(order[i])});
}

TEST_F(DatasetTest, UsesAllRowsWhereFewerAreThereThanAsked) {
  DatasetOptions options;
  const auto dataset =
      ReadDataset(Write("{\"input_ids\": [5]}\n{\"input_ids\": [6]}\n"), options, nullptr, nullptr);
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(dataset->samples.size(), 2U);
}

TEST_F(DatasetTest, NamesFileAndLineOfBadRows) {
  ExpectContains(ErrorOf("{\"input_ids\": [1]}\n\n{\"input_ids\": [1}\n"), "data.jsonl, line 3: ");
  ExpectContains(ErrorOf("[1]\n"), "a row is array, expected an object");
  ExpectContains(
      ErrorOf("{\"txt\": \"x\"}\n"),
      "needs \"messages\", \"conversations\", \"text\" or \"input_ids\"; this one has \"txt\"");
  ExpectContains(ErrorOf("{\"input_ids\": [-1]}\n"), "holds -1");
  ExpectContains(ErrorOf("{\"input_ids\": [2147483648]}\n"), "holds 2147483648");
  ExpectContains(ErrorOf("{\"input_ids\": [1.5]}\n"), "holds 1.5");
  ExpectContains(ErrorOf("{\"input_ids\": [\"a\"]}\n"), "holds string");
  ExpectContains(ErrorOf("{\"text\": \"x\"}\n"), "there is no tokenizer");
  ExpectContains(ErrorOf("{\"messages\": []}\n"), "there is no tokenizer");
  ExpectContains(ErrorOf("\n\n"), "has no rows");
}

TEST_F(DatasetTest, RefusesEndlessLinesAndMissingFiles) {
  ExpectContains(ErrorOf("{}\n" + std::string((16 << 20) + 1, 'x')), "line 2 is longer");
  EXPECT_EQ(ReadDataset("/nowhere/x.jsonl", {}, nullptr, nullptr).status().code(),
            StatusCode::kNotFound);
  DatasetOptions none;
  none.num_samples = 0;
  EXPECT_FALSE(ReadDataset(Write("{\"input_ids\": [1]}\n"), none, nullptr, nullptr).ok());
}

TEST_F(DatasetTest, PutsOneBosBeforeText) {
  const auto tokenizer = Tokenizer::Load(kTokenizer);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const auto bos = tokenizer->bos_added_by_encode();
  ASSERT_TRUE(bos.has_value());
  const auto dataset =
      ReadDataset(Write("{\"text\": \"Once upon a time\"}\n{\"text\": \"<s>Once upon a time\"}\n"),
                  InOrder(2), &*tokenizer, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  for (const Ids& ids : dataset->samples) {
    ASSERT_GE(ids.size(), 2U);
    EXPECT_EQ(ids[0], *bos);
    EXPECT_NE(ids[1], *bos);
  }
}

TEST_F(DatasetTest, LeavesTheBosOfAChatToTheTemplate) {
  const auto tokenizer = Tokenizer::Load(kTokenizer);
  ASSERT_TRUE(tokenizer.ok());
  const auto bos = tokenizer->bos_added_by_encode();
  Value special;
  special.Set("bos_token", "<s>");
  const auto with_bos = ChatTemplate::Compile("{{ bos_token }}{{ messages[0].content }}", special);
  const auto without = ChatTemplate::Compile("{{ messages[0].content }}", special);
  const auto path = Write("{\"messages\": [{\"role\": \"user\", \"content\": \"Lily ran\"}]}\n");
  const auto first = ReadDataset(path, InOrder(1), &*tokenizer, &*with_bos);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->samples[0][0], *bos);
  EXPECT_NE(first->samples[0][1], *bos);
  const auto second = ReadDataset(path, InOrder(1), &*tokenizer, &*without);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->samples[0], *tokenizer->Encode("Lily ran", false));
  const auto none = ReadDataset(path, InOrder(1), &*tokenizer, nullptr);
  ASSERT_FALSE(none.ok());
  ExpectContains(none.status().message(), "needs a chat template");
}

TEST_F(DatasetTest, HandsTheToolsOfARowToTheTemplate) {
  const auto tokenizer = Tokenizer::Load(kTokenizer);
  ASSERT_TRUE(tokenizer.ok());
  const auto chat = ChatTemplate::Compile("{{ tools[0].name }}", Value::MakeObject());
  const auto dataset =
      ReadDataset(Write("{\"messages\": [{\"role\": \"user\"}], \"tools\": [{\"name\": \"dog\"}]}"),
                  InOrder(1), &*tokenizer, &*chat);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ(dataset->samples[0], *tokenizer->Encode("dog", false));
}

TEST_F(DatasetTest, CutsAPlainTextIntoPieces) {
  const auto tokenizer = Tokenizer::Load(kTokenizer);
  ASSERT_TRUE(tokenizer.ok());
  std::string text;
  for (int i = 0; i < 20; ++i) text += "Once upon a time there was a dog.\nIt ran.\n\n";
  const Ids all = *tokenizer->Encode(text, true);
  const auto path = Write(text, "story.txt");
  const auto dataset = ReadDataset(path, InOrder(1000, 16), &*tokenizer, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  Ids joined;
  for (const Ids& piece : dataset->samples) joined.insert(joined.end(), piece.begin(), piece.end());
  EXPECT_EQ(joined, all);
  EXPECT_EQ(dataset->samples[0].size(), 16U);
  EXPECT_EQ(dataset->rows, static_cast<int64_t>((all.size() + 15) / 16));
  EXPECT_EQ(dataset->truncated, 0);
  EXPECT_FALSE(ReadDataset(path, InOrder(1), nullptr, nullptr).ok());
}

}  // namespace
}  // namespace octavo
