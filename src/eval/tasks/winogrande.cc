// winogrande: which of two names a sentence's gap stands for, by how likely the sentence goes on as
// it does behind each.
#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "eval/task_definition.h"
#include "text/jinja/unicode.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "doc_to_text": "(built into octavo)",
  "doc_to_target": "(built into octavo)",
  "doc_to_choice": "(built into octavo)",
  "metric_list": [
    {
      "metric": "acc",
      "aggregation": "mean",
      "higher_is_better": true
    }
  ],
  "output_type": "multiple_choice",
  "should_decontaminate": true,
  "doc_to_decontamination_query": "sentence",
  "metadata": {
    "version": 1.0
  }
})json";

// In front of the gap, and behind it.
Result<std::pair<std::string, std::string>> Parts(const Value& doc) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string sentence, doc.RequireString("sentence"));
  const size_t gap = sentence.find('_');
  if (gap == std::string::npos)
    return InvalidArgument(fmt::format("the sentence has no gap \"_\": {}", sentence));
  return std::pair(sentence.substr(0, gap), sentence.substr(gap + 1));
}

Result<Value> Text(const Value& doc) {
  const Value& answer = *doc.Find("answer");
  const std::string text = answer.is_string() ? answer.as_string() : WriteJson(answer);
  if (text != "1" && text != "2")
    return InvalidArgument(
        fmt::format("the answer is \"{}\", expected 1 or 2 (a test set has none)", text));
  return Value(text == "1" ? 0 : 1);
}

Result<std::vector<std::string>> Choices(const Value& doc) {
  OCTAVO_ASSIGN_OR_RETURN(const auto parts, Parts(doc));
  std::vector<std::string> choices;
  for (const char* option : {"option1", "option2"}) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string name, doc.RequireString(option));
    choices.push_back(parts.first + name);
  }
  return choices;
}

Result<Value> Target(const Value& doc) {
  OCTAVO_ASSIGN_OR_RETURN(const auto parts, Parts(doc));
  return Value(jinja::Strip(parts.second, jinja::Side::kBoth));
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "winogrande";
  task.config = kConfig;
  task.files = {"winogrande/{split}.jsonl", "winogrande/{split}.csv", "winogrande/{split}_xl.jsonl",
                "winogrande_1.1/{split}_xl.jsonl", "winogrande_1.1/{split}.jsonl"};
  task.columns = {"sentence", "option1", "option2", "answer"};
  task.origin = "allenai/winogrande (winogrande_xl), or the release's dev.jsonl (train_xl)";
  task.text = Text;
  task.choices = Choices;
  task.target = Target;
  return {task};
}

}  // namespace

extern const TaskFamily kWinograndeTasks;
const TaskFamily kWinograndeTasks = {.tasks = Tasks};

}  // namespace octavo
