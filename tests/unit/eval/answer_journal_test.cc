// A run that goes on where it was ends with the same numbers, to the last bit.
#include "eval/answer_journal.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::ReadEvalRows;
using testing::Stories;
using testing::TemporaryFolder;
using testing::TestData;

TEST(AnswerJournal, AnswersReadBackAndACutLineIsDropped) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "journal";
  const std::vector<RequestAnswer> scores = {{-1.0 / 3, true, ""}, {-1e-300, false, ""}};
  const std::vector<RequestAnswer> text = {{0, false, "two\nlines \"é\""}};
  {
    const auto journal = AnswerJournal::Open(path);
    ASSERT_OK(journal);
    EXPECT_EQ((*journal)->found(), 0);
    ASSERT_OK((*journal)->Add("a", 0, scores));
    ASSERT_OK((*journal)->Add("b", 7, text));
  }
  std::ofstream(path, std::ios::app) << R"({"task": "a", "doc_)";
  const auto journal = AnswerJournal::Open(path);
  ASSERT_OK(journal);
  EXPECT_EQ((*journal)->found(), 2);
  EXPECT_EQ(*(*journal)->Find("a", 0), scores);
  EXPECT_EQ(*(*journal)->Find("b", 7), text);
  EXPECT_EQ((*journal)->Find("b", 0), nullptr);
  ASSERT_OK((*journal)->Add("a", 1, text));
  EXPECT_EQ(AnswerJournal::Open(path).value()->found(), 3);
  (*journal)->Remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(AnswerJournal, AFileThatIsNoJournalIsRefused) {
  const TemporaryFolder folder;
  ASSERT_OK(WriteFileAtomically(folder.path() / "file", "{\"task\": 3}\n"));
  EXPECT_EQ(AnswerJournal::Open(folder.path() / "file").status().code(), StatusCode::kCorruptFile);
}

// Runs the task whole, then again behind the first lines of its journal.
void ExpectSameWhenInterrupted(const Task& task, int64_t limit, size_t lines_left) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "journal";
  Stories stories;
  const EvalOptions options{.limit = limit, .batch_size = 3};
  const auto whole = stories.Run(task, options, AnswerJournal::Open(path).value().get());
  ASSERT_OK(whole);
  const std::string text = ReadFile(path).value();
  size_t end = 0;
  for (size_t line = 0; line < lines_left; ++line) end = text.find('\n', end) + 1;
  ASSERT_OK(WriteFileAtomically(path, text.substr(0, end + 5)));
  const auto journal = AnswerJournal::Open(path).value();
  ASSERT_EQ(journal->found(), static_cast<int64_t>(lines_left));
  const auto rest = stories.Run(task, options, journal.get());
  ASSERT_OK(rest);
  EXPECT_EQ(rest->answers, whole->answers);
  ASSERT_EQ(rest->figures.size(), whole->figures.size());
  for (size_t i = 0; i < whole->figures.size(); ++i)
    EXPECT_EQ(rest->figures[i].value, whole->figures[i].value);
}

TEST(AnswerJournal, ScoresAfterAnInterruption) {
  Task task = MakeTask("hellaswag");
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  ExpectSameWhenInterrupted(task, 70, 65);
}

TEST(AnswerJournal, AnswersAfterAnInterruption) {
  Task task = MakeTask("gsm8k_cot");
  ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
  ExpectSameWhenInterrupted(task, 5, 2);
}

}  // namespace
}  // namespace octavo
