// lambada_openai: the last word of a passage.
#include "eval/task_definition.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "test_split": "test",
  "doc_to_text": "{{text.split(' ')[:-1]|join(' ')}}",
  "doc_to_target": "{{' '+text.split(' ')[-1]}}",
  "metric_list": [
    {
      "metric": "perplexity",
      "aggregation": "perplexity",
      "higher_is_better": false
    },
    {
      "metric": "acc",
      "aggregation": "mean",
      "higher_is_better": true
    }
  ],
  "output_type": "loglikelihood",
  "should_decontaminate": true,
  "doc_to_decontamination_query": "{{text}}",
  "metadata": {
    "version": 1.0
  }
})json";

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "lambada_openai";
  task.config = kConfig;
  task.files = {"lambada_openai/{split}.jsonl", "lambada/lambada_{split}.jsonl",
                "lambada_{split}.jsonl"};
  task.columns = {"text"};
  task.origin = "OpenAI's lambada_test.jsonl, or EleutherAI/lambada_openai (default)";
  return {task};
}

}  // namespace

extern const TaskFamily kLambadaTasks;
const TaskFamily kLambadaTasks = {.tasks = Tasks};

}  // namespace octavo
