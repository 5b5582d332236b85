// arc_challenge: science questions of schools, with three to five choices.
#include <utility>

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

// The release nests {"stem", "choices": [{"text", "label"}]} in "question".
Result<Value> FromRelease(const TaskDefinition& /*task*/, Value row) {
  const Value* question = row.Find("question");
  const Value* stem = question != nullptr ? question->Find("stem") : nullptr;
  const Value* choices = question != nullptr ? question->Find("choices") : nullptr;
  if (stem == nullptr || choices == nullptr || !choices->is_array()) return row;
  Value texts = Value::MakeArray();
  Value labels = Value::MakeArray();
  for (const Value& choice : choices->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(std::string text, choice.RequireString("text"));
    OCTAVO_ASSIGN_OR_RETURN(std::string label, choice.RequireString("label"));
    texts.as_array().emplace_back(std::move(text));
    labels.as_array().emplace_back(std::move(label));
  }
  Value lists = Value::MakeObject();
  lists.Set("text", std::move(texts));
  lists.Set("label", std::move(labels));
  Value converted = Value::MakeObject();
  for (const char* key : {"id", "question", "choices", "answerKey"}) {
    const Value* member = row.Find(key);
    if (std::string_view(key) == "question") {
      converted.Set(key, *stem);
    } else if (std::string_view(key) == "choices") {
      converted.Set(key, lists);
    } else if (member != nullptr) {
      converted.Set(key, *member);
    }
  }
  return converted;
}

// The release names its splits Train, Dev and Test.
std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "arc_challenge";
  task.config = kConfig;
  task.files = {"arc_challenge/{split}.jsonl", "ARC-Challenge/{split}.jsonl",
                "arc-challenge/{split}.jsonl"};
  task.columns = {"question", "choices", "answerKey"};
  task.origin =
      "allenai/ai2_arc (ARC-Challenge), or the release's ARC-Challenge-Test.jsonl (Train, Dev) as "
      "test.jsonl (train, validation)";
  task.convert_row = FromRelease;
  return {task};
}

}  // namespace

extern const TaskFamily kArcTasks;
const TaskFamily kArcTasks = {.tasks = Tasks};

}  // namespace octavo
