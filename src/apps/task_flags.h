// The flags of commands that run evaluation tasks: `eval` and `compare`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "eval/eval_subject.h"
#include "eval/evaluate.h"
#include "eval/task_list.h"

namespace octavo {

struct TaskFlags {
  std::vector<std::string> tasks;
  std::vector<std::string> task_files;
  std::string data;
  std::optional<int64_t> num_fewshot;
  std::optional<double> limit;  // a share below 1, else a number of documents
  bool apply_chat_template = false;
  int64_t max_length = 0;
  bool turns = false;  // the default, said
  bool one_turn = false;
  bool add_bos = false;
  bool no_bos = false;
  EvalOptions eval;

  bool any_task() const { return !tasks.empty() || !task_files.empty(); }
  SubjectOptions subject() const;
};

void AddTaskFlags(CLI::App& app, TaskFlags* flags);

// The tasks that are named, with their data.
Result<TaskSelection> ReadTasks(const TaskFlags& flags);

// How one of them is run, with the chat template of `templates`.
EvalOptions EvalOptionsOf(const TaskFlags& flags, const Task& task, const EvalSubject& templates);

// One of them, with the chat template of `templates` (the subject itself, unless several models are
// to be asked the same); what a reader of the log wants to know is said. `journal` may be null.
Result<TaskResult> RunTask(const TaskFlags& flags, const EvalSubject& subject, const Task& task,
                           const EvalSubject& templates, AnswerJournal* journal,
                           const Context& context);

}  // namespace octavo
