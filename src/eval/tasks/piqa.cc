// piqa: which of two ways reaches a goal of everyday life.
#include <utility>

#include "eval/release_rows.h"
#include "eval/task_definition.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "doc_to_text": "Question: {{goal}}\nAnswer:",
  "doc_to_target": "label",
  "doc_to_choice": "{{[sol1, sol2]}}",
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
  "doc_to_decontamination_query": "goal",
  "metadata": {
    "version": 1.0
  }
})json";

Result<Value> FromRelease(const TaskDefinition& /*task*/, Value row) {
  return NumberLabel(std::move(row));
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "piqa";
  task.config = kConfig;
  task.files = {"piqa/{split}.jsonl", "piqa/{split}.csv", "physicaliqa-train-dev/{split}.jsonl"};
  task.label_suffix = "-labels.lst";
  task.columns = {"goal", "sol1", "sol2", "label"};
  task.origin = "baber/piqa, or the release's dev.jsonl and dev-labels.lst (train)";
  task.convert_row = FromRelease;
  return {task};
}

}  // namespace

extern const TaskFamily kPiqaTasks;
const TaskFamily kPiqaTasks = {.tasks = Tasks};

}  // namespace octavo
