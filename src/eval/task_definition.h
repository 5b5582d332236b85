// What a file of src/eval/tasks defines: tasks in lm-evaluation-harness's own YAML, with what that
// has in Python, and where their data are found.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

struct TaskDefinition {
  std::string name;
  // lm-eval's configuration of the task, whole (no includes), in YAML or JSON; without the data set
  // keys.
  std::string config;

  // Files of a split under the data folder, the first that is there is taken; "{split}" stands for
  // the split's name, or what releases call it: Test; validation, val, valid, dev, Dev; Train.
  std::vector<std::string> files;
  // A split and its file, before those: as they are, or below the data folder.
  std::vector<std::pair<std::string, std::string>> data_files;
  // What is in place of ".jsonl" in the name of a file of answers, one a line, that a release keeps
  // beside the rows; they become the column "label". Empty: there is none.
  std::string label_suffix;
  // What a row must have once it is converted.
  std::vector<std::string> columns;
  std::string origin;  // where the files come from, for people

  // Null: nothing is to be done.
  // A row of another release to the columns above.
  Result<Value> (*convert_row)(const TaskDefinition& task, Value row) = nullptr;
  // The rows of a file that is plain text (.raw, .txt).
  std::vector<Value> (*read_text)(std::string_view text) = nullptr;
  // What lm-eval's YAML names a Python function for: "process_docs", "doc_to_text",
  // "doc_to_choice", "doc_to_target"; "filter_fn" of a filter "custom".
  Result<Value> (*process_doc)(Value doc) = nullptr;
  Result<Value> (*text)(const Value& doc) = nullptr;
  Result<std::vector<std::string>> (*choices)(const Value& doc) = nullptr;
  Result<Value> (*target)(const Value& doc) = nullptr;
  Result<std::string> (*custom_filter)(const Value& doc, std::string answer) = nullptr;
  // Of "process_results": the number that a log-likelihood is divided by.
  struct Counts {
    int64_t words;
    int64_t bytes;
  };
  Counts (*counts)(const Value& doc) = nullptr;
};

// Several tasks under one name: the means of `metric`, weighted by size.
struct TaskGroup {
  std::string name;
  std::string alias;
  std::vector<std::string> members;  // tasks or groups
  std::string metric;                // empty: no figure of its own
  std::string version;
};

// A line of tasks.inc.
struct TaskFamily {
  std::vector<TaskDefinition> (*tasks)();
  std::vector<TaskGroup> (*groups)() = nullptr;  // null: none
};

}  // namespace octavo
