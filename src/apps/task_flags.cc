#include "apps/task_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "eval/task_file.h"

namespace octavo {

SubjectOptions TaskFlags::subject() const {
  SubjectOptions options{.max_length = max_length, .apply_chat_template = apply_chat_template};
  if (add_bos || no_bos) options.add_bos = add_bos;
  return options;
}

void AddTaskFlags(CLI::App& app, TaskFlags* flags) {
  app.add_option("--tasks", flags->tasks, "Tasks and groups, separated by commas; list: all")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--task-file", flags->task_files,
                 "A task of your own in lm-eval's YAML (may be repeated): the plain kinds, with "
                 "Jinja templates")
      ->allow_extra_args(false);
  app.add_option("--data", flags->data, "The folder of the tasks' data files")
      ->capture_default_str();
  app.add_option("--num-fewshot", flags->num_fewshot,
                 "Examples in front of each question; by default what each task has")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--limit", flags->limit,
                 "Documents of each task, the first ones; below 1: that share of them")
      ->check(CLI::PositiveNumber);
  auto* chat = app.add_flag("--apply-chat-template", flags->apply_chat_template,
                            "Put prompts into the model's chat template");
  auto* turns = app.add_flag("--fewshot-as-multiturn", flags->turns,
                             "With a chat template: examples as turns of their own (the default)")
                    ->needs(chat);
  app.add_flag("--no-fewshot-as-multiturn", flags->one_turn, "Examples all in one turn")
      ->excludes(turns);
  app.add_option("--system-instruction", flags->eval.prompts.system_instruction,
                 "Text in front of every prompt, or its system turn");
  auto* bos = app.add_flag("--add-bos-token", flags->add_bos,
                           "Put BOS in front of every text; by default as the tokenizer does");
  app.add_flag("--no-add-bos-token", flags->no_bos, "Put none there")->excludes(bos);
  app.add_option("--max-length", flags->max_length,
                 "Tokens the model sees at once; by default all its positions")
      ->check(CLI::PositiveNumber);
  app.add_option_function<std::string>(
         "--batch-size",
         [flags](const std::string& size) {
           if (size != "auto") flags->eval.batch_size = std::stoll(size);
         },
         "Answers to generate side by side; auto: as many as free memory holds, at most 32")
      ->check(CLI::IsMember({"auto"}) | CLI::Range(1, 1024))
      ->default_str("auto");
  app.add_option("--bootstrap-iters", flags->eval.bootstrap_iterations,
                 "Resamples for standard errors that have no formula; 0: no standard errors")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--fewshot-seed", flags->eval.prompts.fewshot_seed, "Seed of drawn examples")
      ->capture_default_str();
}

Result<TaskSelection> ReadTasks(const TaskFlags& flags) {
  std::vector<TaskDefinition> own;
  for (const std::string& path : flags.task_files) {
    OCTAVO_ASSIGN_OR_RETURN(TaskDefinition task, ReadTaskFile(path));
    own.push_back(std::move(task));
  }
  OCTAVO_ASSIGN_OR_RETURN(TaskSelection selection,
                          SelectTasks(flags.tasks, flags.num_fewshot, own));
  for (Task& task : selection.tasks) OCTAVO_RETURN_IF_ERROR(task.ReadData(flags.data));
  return selection;
}

EvalOptions EvalOptionsOf(const TaskFlags& flags, const Task& task, const EvalSubject& templates) {
  EvalOptions eval = flags.eval;
  eval.prompts.chat_template = templates.chat_template();
  eval.prompts.fewshot_as_multiturn = !flags.one_turn;
  if (flags.limit) {
    const auto documents = static_cast<double>(task.documents().size());
    eval.limit =
        static_cast<int64_t>(*flags.limit < 1 ? std::ceil(documents * *flags.limit) : *flags.limit);
  }
  return eval;
}

Result<TaskResult> RunTask(const TaskFlags& flags, const EvalSubject& subject, const Task& task,
                           const EvalSubject& templates, AnswerJournal* journal,
                           const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(
      TaskResult result,
      Evaluate(subject.evaluated(), task, EvalOptionsOf(flags, task, templates), journal, context));
  context.log.Info(fmt::format("{}: {} documents, {:.1f} s", task.name(), result.prompts.size(),
                               result.seconds));
  if (result.truncated > 0) {
    context.log.Warning(fmt::format("{}: of {} requests the model saw only the last {} tokens",
                                    task.name(), result.truncated, subject.evaluated().max_length));
  }
  if (result.empty > 0) {
    context.log.Warning(fmt::format(
        "{}: {} of {} answers are empty: the model ended, or met a stop string, at once; they "
        "are scored as they are",
        task.name(), result.empty, result.prompts.size()));
  }
  return result;
}

}  // namespace octavo
