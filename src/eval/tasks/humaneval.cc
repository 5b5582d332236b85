// humaneval: Python functions by their head and what they are to do. Answers are written down, not
// scored: that takes running them.
#include <utility>

#include "eval/task_definition.h"

namespace octavo {
namespace {

// lm-eval's with --predict_only, which puts "bypass" in place of pass@1.
constexpr char kConfig[] = R"json({
  "test_split": "test",
  "unsafe_code": true,
  "doc_to_text": "{{prompt}}",
  "doc_to_target": "{{test}}\ncheck({{entry_point}})",
  "num_fewshot": 0,
  "metric_list": [
    {
      "metric": "bypass"
    }
  ],
  "output_type": "generate_until",
  "generation_kwargs": {
    "until": [
      "\nclass",
      "\ndef",
      "\n#",
      "\nif",
      "\nprint"
    ],
    "max_gen_toks": 1024,
    "do_sample": false
  },
  "filter_list": [
    {
      "name": "create_test",
      "filter": [
        {
          "function": "custom",
          "filter_fn": "(built into octavo)"
        }
      ]
    }
  ],
  "metadata": {
    "version": 1.0
  }
})json";

// The whole function.
Result<std::string> WithHead(const Value& doc, std::string answer) {
  OCTAVO_ASSIGN_OR_RETURN(std::string prompt, doc.RequireString("prompt"));
  return prompt + answer;
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "humaneval";
  task.config = kConfig;
  task.files = {"humaneval/{split}.jsonl", "humaneval/HumanEval.jsonl", "HumanEval.jsonl"};
  task.columns = {"prompt", "test", "entry_point"};
  task.origin = "openai/openai_humaneval, or the release's HumanEval.jsonl.gz";
  task.custom_filter = WithHead;
  return {task};
}

}  // namespace

extern const TaskFamily kHumanevalTasks;
const TaskFamily kHumanevalTasks = {.tasks = Tasks};

}  // namespace octavo
