// What an evaluation leaves behind, in lm-evaluation-harness's forms: the results file, the samples
// file of each task, the table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/value.h"
#include "eval/evaluate.h"
#include "eval/task_definition.h"

namespace octavo {

// What the results file says of the model and the run.
struct EvalRunInfo {
  std::string model;                            // as it was given
  Value model_arguments = Value::MakeObject();  // "dtype", "add_bos_token" ...
  int64_t parameters = 0;
  std::string dtype;  // of the stored weights, as torch names it
  int64_t max_length = 0;
  // Token and id of each; nothing: the tokenizer has none.
  std::optional<std::pair<std::string, TokenId>> pad, eos, bos;
  std::optional<double> limit;  // as it was given
  std::string system_instruction;
  std::optional<bool> fewshot_as_multiturn;  // with a chat template
  std::string chat_template;                 // its source; empty: none was applied
  std::optional<int64_t> batch_size;         // nothing: by memory
  int64_t bootstrap_iterations = 0;
  uint64_t fewshot_seed = 0;
  double start_time = 0;  // seconds since 1970
  double seconds = 0;
  std::string version;      // of octavo
  std::string environment;  // for people: processor, threads
};

// tasks[i] came to results[i]; groups before the groups they hold. `with_samples`: whether samples
// are written, too, of which the file then has hashes.
Value ResultsJson(const EvalRunInfo& info, std::span<const Task> tasks,
                  std::span<const TaskResult> results, std::span<const TaskGroup> groups,
                  bool with_samples);

// The name of the folder that the model's files go to.
std::string SanitizedModelName(const std::string& name);

// A line for each document behind each filter.
std::string SamplesJsonLines(const Task& task, const TaskResult& result);

// The figures of a results file, "results" or "groups", as Markdown.
std::string ResultsTable(const Value& results, std::string_view section);

}  // namespace octavo
