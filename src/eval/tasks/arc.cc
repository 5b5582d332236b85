// arc_easy, arc_challenge: science questions of schools, with three to five choices.
#include <fmt/format.h>

#include <utility>

#include "eval/release_rows.h"
#include "eval/task_definition.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "test_split": "test",
  "doc_to_text": "Question: {{question}}\nAnswer:",
  "doc_to_target": "{{choices.label.index(answerKey)}}",
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
  "doc_to_decontamination_query": "Question: {{question}}\nAnswer:",
  "metadata": {
    "version": 1.0
  }
})json";

Result<Value> FromRelease(const TaskDefinition& /*task*/, Value row) {
  return UnnestQuestion(std::move(row), "question");
}

TaskDefinition MakeTask(std::string name, const std::string& folder, const std::string& release) {
  TaskDefinition task;
  task.name = std::move(name);
  task.config = kConfig;
  task.files = {fmt::format("{}/{{split}}.jsonl", task.name),
                fmt::format("{}/{{split}}.jsonl", release),
                fmt::format("{}/{}-{{split}}.jsonl", release, release),
                fmt::format("{}/{{split}}.jsonl", folder)};
  task.columns = {"question", "choices", "answerKey"};
  task.origin = fmt::format("allenai/ai2_arc ({}), or the release's {}-Test.jsonl (Train, Dev)",
                            release, release);
  task.convert_row = FromRelease;
  return task;
}

std::vector<TaskDefinition> Tasks() {
  return {MakeTask("arc_easy", "arc-easy", "ARC-Easy"),
          MakeTask("arc_challenge", "arc-challenge", "ARC-Challenge")};
}

}  // namespace

extern const TaskFamily kArcTasks;
const TaskFamily kArcTasks = {.tasks = Tasks};

}  // namespace octavo
