// Tasks of one's own, in lm-eval's YAML.
#include "eval/task_file.h"

#include <gtest/gtest.h>

#include "eval/prompts.h"
#include "eval/task_list.h"
#include "support/temporary_folder.h"
#include "unit/eval/eval_data.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;

// hellaswag's kind and arc's templates, and a column that is named as it is.
constexpr std::string_view kChoice = R"(
task: my_choice
dataset_path: json
dataset_kwargs:
  data_files:
    test: rows.jsonl
test_split: test
output_type: multiple_choice
doc_to_text: "{{q.strip()}}?"
doc_to_choice: "{{answers.wrong + [answers.right]}}"
doc_to_target: "{{answers.wrong | length}}"
metric_list:
  - metric: acc
metadata:
  version: 2.5
)";
constexpr std::string_view kRows =
    R"({"q": " Who ", "answers": {"right": "I", "wrong": ["you", "they"]}})";

class TaskFileTest : public ::testing::Test {
 protected:
  Result<TaskDefinition> Read(std::string_view yaml) {
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / "my.yaml", yaml).ok());
    return ReadTaskFile(folder_.path() / "my.yaml");
  }
  Status ErrorOf(std::string from, std::string_view to) {
    std::string yaml(kChoice);
    yaml.replace(yaml.find(from), from.size(), to);
    const auto definition = Read(yaml);
    return definition.ok() ? Task::Make(*definition, std::nullopt).status() : definition.status();
  }

  TemporaryFolder folder_;
};

TEST_F(TaskFileTest, IsATaskLikeTheOthers) {
  const auto definition = Read(kChoice);
  ASSERT_OK(definition);
  ASSERT_OK(WriteFileAtomically(folder_.path() / "rows.jsonl", kRows));
  auto selection = SelectTasks({}, std::nullopt, {&*definition, 1});
  ASSERT_OK(selection);
  Task& task = selection->tasks.at(0);
  EXPECT_EQ(task.version(), 2.5);
  ASSERT_OK(task.ReadData("/nowhere"));  // the file lies beside the YAML
  const auto prompts = BuildPrompts(task, 1, {});
  ASSERT_OK(prompts);
  EXPECT_EQ(prompts->at(0).context, "Who?");
  EXPECT_EQ(prompts->at(0).continuations, (std::vector<std::string>{" you", " they", " I"}));
  EXPECT_EQ(prompts->at(0).target, Value(2));
}

TEST_F(TaskFileTest, AColumnThatIsNotThereIsAnError) {
  ASSERT_OK(WriteFileAtomically(folder_.path() / "rows.jsonl", R"({"question": "Who"})"));
  std::string yaml(kChoice);
  yaml.replace(yaml.find("{{q.strip()}}"), 13, "{{q}}");
  Task task = Task::Make(Read(yaml).value(), std::nullopt).value();
  ASSERT_OK(task.ReadData(folder_.path()));
  EXPECT_NE(task.TextOf(task.documents()[0]).status().message().find("'q' is undefined"),
            std::string::npos);
}

TEST_F(TaskFileTest, WhatIsNotImplementedIsNamed) {
  const auto expect = [&](std::string from, std::string_view to, std::string_view message) {
    const Status status = ErrorOf(std::move(from), to);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  };
  expect("dataset_path: json", "process_docs: !function utils.process", "!function");
  expect("dataset_path: json", "process_results: x", "process_results");
  expect("dataset_path: json", "include: other.yaml", "include");
  expect("output_type: multiple_choice", "output_type: multiple_choices", "multiple_choices");
  expect("metric: acc", "metric: f1", "f1");
  expect("task: my_choice", "task_alias: x", "task");
}

TEST_F(TaskFileTest, ANameThatIsTakenIsRefused) {
  std::string yaml(kChoice);
  yaml.replace(yaml.find("my_choice"), 9, "gsm8k");
  const auto definition = Read(yaml);
  ASSERT_OK(definition);
  EXPECT_EQ(SelectTasks({}, std::nullopt, {&*definition, 1}).status().code(),
            StatusCode::kAlreadyExists);
}

TEST_F(TaskFileTest, RollingTasksCountTheirTarget) {
  Task task = Task::Make(Read(R"(
task: my_pages
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{page}}"
metric_list:
  - metric: word_perplexity
)")
                             .value(),
                         std::nullopt)
                  .value();
  const auto counts = task.CountsOf(Value(), "é b");
  EXPECT_EQ(counts.words, 2);
  EXPECT_EQ(counts.bytes, 4);
}

}  // namespace
}  // namespace octavo
