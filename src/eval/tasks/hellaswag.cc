// hellaswag: which of four endings a scene has.
#include <utility>

#include "eval/python_text.h"
#include "eval/task_definition.h"
#include "text/jinja/unicode.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "process_docs": "(built into octavo)",
  "doc_to_text": "{{query}}",
  "doc_to_target": "{{label}}",
  "doc_to_choice": "choices",
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
  "metadata": {
    "version": 1.0
  }
})json";

// Titles of WikiHow become sentences, other brackets go.
std::string Clean(std::string_view raw) {
  std::string text(jinja::Strip(raw, jinja::Side::kBoth));
  ReplaceAll(text, " [title]", ". ");
  for (size_t open = text.find('['); open != std::string::npos; open = text.find('[', open)) {
    const size_t close = text.find(']', open);
    if (close == std::string::npos) break;
    // A bracket that goes on over a line's end stays, as in the pattern \[.*?\].
    if (text.find('\n', open) < close) {
      ++open;
      continue;
    }
    text.erase(open, close + 1 - open);
  }
  ReplaceAll(text, "  ", " ");
  return text;
}

Result<Value> Process(Value doc) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string activity, doc.RequireString("activity_label"));
  OCTAVO_ASSIGN_OR_RETURN(const std::string first, doc.RequireString("ctx_a"));
  OCTAVO_ASSIGN_OR_RETURN(const std::string second, doc.RequireString("ctx_b"));
  const Value* endings = doc.Find("endings");
  if (endings == nullptr || !endings->is_array())
    return InvalidArgument("\"endings\" is no list of texts");
  Value choices = Value::MakeArray();
  for (const Value& ending : endings->as_array()) {
    if (!ending.is_string()) return InvalidArgument("\"endings\" is no list of texts");
    choices.as_array().emplace_back(Clean(ending.as_string()));
  }
  doc.Set("query", Clean(activity + ": " + first + " " + jinja::Capitalize(second)));
  doc.Set("choices", std::move(choices));
  const Value* label = doc.Find("label");
  const bool is_text = label != nullptr && label->is_string();
  if (is_text && (label->as_string().size() != 1 || label->as_string()[0] < '0' ||
                  label->as_string()[0] > '9'))
    return InvalidArgument("\"label\" is not the number of an ending (a test set has none)");
  doc.Set("gold", is_text ? Value(label->as_string()[0] - '0') : *label);
  return doc;
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "hellaswag";
  task.config = kConfig;
  task.files = {"hellaswag/{split}.jsonl", "hellaswag_{split}.jsonl",
                "hellaswag/hellaswag_{split}.jsonl"};
  task.columns = {"activity_label", "ctx_a", "ctx_b", "endings", "label"};
  task.origin = "the release's hellaswag_val.jsonl, or Rowan/hellaswag";
  task.process_doc = Process;
  return {task};
}

}  // namespace

extern const TaskFamily kHellaswagTasks;
const TaskFamily kHellaswagTasks = {.tasks = Tasks};

}  // namespace octavo
