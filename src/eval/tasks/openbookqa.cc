// openbookqa: questions that a fact of elementary science answers.
#include <utility>

#include "eval/release_rows.h"
#include "eval/task_definition.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "test_split": "test",
  "doc_to_text": "question_stem",
  "doc_to_target": "{{choices.label.index(answerKey.lstrip())}}",
  "doc_to_choice": "{{choices.text}}",
  "metric_list": [
    {
      "metric": "acc",
      "aggregation": "mean",
      "higher_is_better": true
    },
    {
      "metric": "acc_norm",
      "aggregation": "mean",
      "higher_is_better": true
    }
  ],
  "output_type": "multiple_choice",
  "should_decontaminate": true,
  "doc_to_decontamination_query": "question_stem",
  "metadata": {
    "version": 1.0
  }
})json";

Result<Value> FromRelease(const TaskDefinition& /*task*/, Value row) {
  return UnnestQuestion(std::move(row), "question_stem");
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "openbookqa";
  task.config = kConfig;
  task.files = {"openbookqa/{split}.jsonl", "OpenBookQA-V1-Sep2018/Data/Main/{split}.jsonl"};
  task.columns = {"question_stem", "choices", "answerKey"};
  task.origin = "allenai/openbookqa (main), or the release's Data/Main/test.jsonl (train)";
  task.convert_row = FromRelease;
  return {task};
}

}  // namespace

extern const TaskFamily kOpenbookqaTasks;
const TaskFamily kOpenbookqaTasks = {.tasks = Tasks};

}  // namespace octavo
