// Tasks by name, their groups, and data files that are missing or others.
#include "eval/task_list.h"

#include <gtest/gtest.h>

#include <set>

#include "support/temporary_folder.h"
#include "unit/eval/eval_data.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;
using testing::TestData;

Result<TaskSelection> Select(const std::vector<std::string>& names) {
  return SelectTasks(names, std::nullopt);
}

TEST(TaskList, EveryTaskReadsItsConfiguration) {
  std::set<std::string> names;
  for (const TaskDefinition& definition : AllTasks()) {
    ASSERT_OK(Task::Make(definition, std::nullopt));
    EXPECT_TRUE(names.insert(definition.name).second) << definition.name;
    EXPECT_FALSE(definition.files.empty() || definition.columns.empty()) << definition.name;
    EXPECT_FALSE(definition.origin.empty()) << definition.name;
  }
  EXPECT_EQ(names.size(), 69U);
}

TEST(TaskList, AGroupIsAllItsTasks) {
  const auto all = Select({"mmlu"});
  ASSERT_OK(all);
  EXPECT_EQ(all->tasks.size(), 57U);
  EXPECT_EQ(all->groups.size(), 5U);
  EXPECT_EQ(TasksOfGroup(all->groups.front(), all->groups).size(), 57U);
  const auto stem = Select({"mmlu_stem", "mmlu_astronomy", "gsm8k"});
  ASSERT_OK(stem);
  EXPECT_EQ(stem->tasks.size(), 20U);
  EXPECT_EQ(stem->tasks.back().name(), "gsm8k");
}

TEST(TaskList, AMisspeltTaskNamesTheNearest) {
  const auto wrong = Select({"helaswag"});
  EXPECT_EQ(wrong.status().code(), StatusCode::kNotFound);
  EXPECT_NE(wrong.status().message().find("did you mean \"hellaswag\"?"), std::string::npos);
}

TEST(TaskList, NumFewshot) {
  const auto names = std::vector<std::string>{"gsm8k", "hellaswag"};
  const auto defaults = SelectTasks(names, std::nullopt);
  EXPECT_EQ(defaults->tasks[0].num_fewshot(), 5);
  EXPECT_EQ(defaults->tasks[1].num_fewshot(), 0);
  const auto two = SelectTasks(names, 2);
  EXPECT_EQ(two->tasks[0].num_fewshot(), 2);
  EXPECT_EQ(two->tasks[1].num_fewshot(), 2);
}

TEST(TaskData, MissingFilesSayWhereTheyComeFrom) {
  const TemporaryFolder folder;
  auto selection = Select({"gsm8k"});
  const Status status = selection->tasks[0].ReadData(folder.path());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  for (const char* part : {"test split", "gsm8k/test.jsonl", "openai/gsm8k"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(TaskData, OtherColumnsAreNamed) {
  const TemporaryFolder folder;
  ASSERT_OK(WriteFileAtomically(folder.path() / "gsm8k_test.jsonl",
                                R"({"problem": "1 + 1", "answer": "2"})"));
  auto selection = Select({"gsm8k"});
  const Status status = selection->tasks[0].ReadData(folder.path());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  for (const char* part : {"gsm8k_test.jsonl, line 1", "\"question\"", "has problem, answer"})
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(TaskData, RowsOfOtherReleasesAreConverted) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "mmlu");
  ASSERT_OK(WriteFileAtomically(folder.path() / "mmlu/anatomy_test.csv",
                                "question,A,B,C,D,answer\nWhich?,a,b,c,d,2\nWho?,a,b,c,d,B\n"));
  ASSERT_OK(WriteFileAtomically(folder.path() / "wiki.test.raw", " \n = One = \n a b \n"));
  std::filesystem::create_directories(folder.path() / "arc_challenge");
  ASSERT_OK(WriteFileAtomically(
      folder.path() / "arc_challenge/test.jsonl",
      R"({"id": "x", "question": {"stem": "Why?", "choices": [{"text": "so", "label": "1"}, )"
      R"({"text": "no", "label": "2"}]}, "answerKey": "2"})"));
  auto selection = Select({"mmlu_anatomy", "wikitext", "arc_challenge"});
  for (Task& task : selection->tasks) ASSERT_OK(task.ReadData(folder.path()));
  const Task& anatomy = selection->tasks[0];
  ASSERT_EQ(anatomy.documents().size(), 2U);
  EXPECT_EQ(anatomy.TextOf(anatomy.documents()[0]).value(),
            "Which?\nA. a\nB. b\nC. c\nD. d\nAnswer:");
  EXPECT_EQ(anatomy.TargetOf(anatomy.documents()[0]).value(), Value(2));
  EXPECT_EQ(anatomy.TargetOf(anatomy.documents()[1]).value(), Value(1));
  EXPECT_EQ(selection->tasks[1].documents().size(), 1U);
  const Task& arc = selection->tasks[2];
  EXPECT_EQ(arc.TextOf(arc.documents()[0]).value(), "Question: Why?\nAnswer:");
  EXPECT_EQ(arc.ChoicesOf(arc.documents()[0]).value(), (std::vector<std::string>{"so", "no"}));
  EXPECT_EQ(arc.TargetOf(arc.documents()[0]).value(), Value(1));
}

// A row as each release has it: what becomes of it is what the Hugging Face export has.
TEST(TaskData, ReleasesAreRead) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, std::string_view content) {
    const auto path = folder.path() / name;
    std::filesystem::create_directories(path.parent_path());
    EXPECT_TRUE(WriteFileAtomically(path, content).ok());
  };
  const auto first = [&](const std::string& name) {
    Task task = testing::MakeTask(name);
    EXPECT_TRUE(task.ReadData(folder.path()).ok());
    return std::pair(task.documents().at(0), task.TargetOf(task.documents().at(0)).value());
  };
  write("piqa/valid.jsonl", R"({"goal": "g", "sol1": "a", "sol2": "b"})");
  write("piqa/valid-labels.lst", "1\n");
  EXPECT_EQ(first("piqa").second, Value(1));
  write("boolq/dev.jsonl", R"({"question": "q", "title": "T", "answer": true, "passage": "P."})");
  EXPECT_EQ(first("boolq").first.Find("passage")->as_string(), "T -- P.");
  EXPECT_EQ(first("boolq").second, Value(1));
  std::filesystem::remove(folder.path() / "boolq/dev.jsonl");
  write("boolq/validation.csv", "question,passage,label\nq,\"T -- P, so\",0\n");
  EXPECT_EQ(first("boolq").second, Value(0));
  write("winogrande_1.1/dev.jsonl",
        R"({"qID": "x", "sentence": "A _ b.", "option1": "c", "option2": "d", "answer": "2"})");
  EXPECT_EQ(first("winogrande").second, Value("b."));
  write("OpenBookQA-V1-Sep2018/Data/Main/test.jsonl",
        R"({"id": "x", "question": {"stem": "s", "choices": [{"text": "a", "label": "A"}, )"
        R"({"text": "b", "label": "B"}]}, "answerKey": "B"})");
  EXPECT_EQ(first("openbookqa").first.Find("question_stem")->as_string(), "s");
  EXPECT_EQ(first("openbookqa").second, Value(1));
  write("ARC-Easy/ARC-Easy-Test.jsonl",
        R"({"id": "x", "question": {"stem": "s", "choices": [{"text": "a", "label": "1"}]}, )"
        R"("answerKey": "1"})");
  EXPECT_EQ(first("arc_easy").second, Value(0));
  write("hellaswag/hellaswag_val.jsonl",
        R"({"activity_label": "a", "ctx_a": "b", "ctx_b": "c", "endings": ["d"], "label": "0"})");
  EXPECT_EQ(first("hellaswag").second, Value(0));
}

TEST(TaskData, AnswersThatDoNotFitAreNamed) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "piqa");
  ASSERT_OK(WriteFileAtomically(folder.path() / "piqa/dev.jsonl",
                                R"({"goal": "g", "sol1": "a", "sol2": "b"})"));
  ASSERT_OK(WriteFileAtomically(folder.path() / "piqa/dev-labels.lst", "1\n0\n"));
  Task task = testing::MakeTask("piqa");
  EXPECT_NE(task.ReadData(folder.path()).message().find("has 1 rows"), std::string::npos);
  ASSERT_OK(WriteFileAtomically(folder.path() / "piqa/dev-labels.lst", "-1\n"));
  EXPECT_NE(task.ReadData(folder.path()).message().find("the label is -1"), std::string::npos);
}

}  // namespace
}  // namespace octavo
