// boolq: questions of yes or no about a passage of an encyclopedia.
#include <utility>

#include "eval/release_rows.h"
#include "eval/task_definition.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "doc_to_text": "{{passage}}\nQuestion: {{question}}?\nAnswer:",
  "doc_to_target": "label",
  "doc_to_choice": [
    "no",
    "yes"
  ],
  "metric_list": [
    {
      "metric": "acc"
    }
  ],
  "output_type": "multiple_choice",
  "should_decontaminate": true,
  "doc_to_decontamination_query": "passage",
  "metadata": {
    "version": 2.0
  }
})json";

// The release has the answer as "answer" and the passage's title by itself; SuperGLUE, which
// lm-eval reads, puts the title in front of the passage.
Result<Value> FromRelease(const TaskDefinition& /*task*/, Value row) {
  const Value* title = row.Find("title");
  const Value* answer = row.Find("answer");
  if (title != nullptr && answer != nullptr && row.Find("label") == nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string name, row.RequireString("title"));
    OCTAVO_ASSIGN_OR_RETURN(const std::string passage, row.RequireString("passage"));
    Value converted = Value::MakeObject();
    if (const Value* question = row.Find("question")) converted.Set("question", *question);
    converted.Set("passage", name + " -- " + passage);
    converted.Set("label", *answer);
    row = std::move(converted);
  }
  return NumberLabel(std::move(row));
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "boolq";
  task.config = kConfig;
  task.files = {"boolq/{split}.jsonl", "boolq/{split}.csv", "BoolQ/{split}.jsonl"};
  task.columns = {"question", "passage", "label"};
  task.origin = "aps/super_glue (boolq), SuperGLUE's BoolQ/val.jsonl, or the release's dev.jsonl";
  task.convert_row = FromRelease;
  return {task};
}

}  // namespace

extern const TaskFamily kBoolqTasks;
const TaskFamily kBoolqTasks = {.tasks = Tasks};

}  // namespace octavo
