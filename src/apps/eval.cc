#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>

#include "apps/command.h"
#include "apps/task_flags.h"
#include "base/file.h"
#include "base/json.h"
#include "eval/answer_journal.h"
#include "eval/eval_report.h"
#include "eval/eval_subject.h"
#include "eval/evaluate.h"
#include "eval/task_list.h"
#include "io/sha256.h"

namespace octavo {

namespace {

using Clock = std::chrono::system_clock;

struct Options : TaskFlags {
  std::string model;
  std::string output;
  bool log_samples = false;
  bool json = false;
};

double SecondsSince1970(Clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

// "2026-11-30T07-45-48.123456", as lm-eval dates its files.
std::string DateId(Clock::time_point time) {
  const std::time_t seconds = Clock::to_time_t(time);
  std::tm local{};
  localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H-%M-%S", &local);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()) %
      std::chrono::seconds(1);
  return fmt::format("{}.{:06}", std::string_view(text.data(), length), micros.count());
}

std::string TaskNames() {
  std::string text = "Tasks:\n";
  for (const TaskDefinition& task : AllTasks())
    text += fmt::format("  {:<40} {}\n", task.name, task.origin);
  text += "Groups:\n";
  for (const TaskGroup& group : AllGroups())
    text += fmt::format("  {:<40} {} members\n", group.name, group.members.size());
  return text;
}

// What a run asks, as a name: the same for the same model, data and options.
std::string Fingerprint(const Options& options, const std::vector<Task>& tasks) {
  Value asked = Value::MakeObject();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(options.model)) {
    if (!entry.is_regular_file()) continue;
    files.push_back(fmt::format("{} {} {}", entry.path().string(), entry.file_size(),
                                entry.last_write_time().time_since_epoch().count()));
  }
  std::sort(files.begin(), files.end());
  asked.Set("model", Value::Array(files.begin(), files.end()));
  for (const Task& task : tasks) {
    Value of_task = task.ConfigJson();
    of_task.Set("documents", Sha256OfText(WriteJson(task.documents())));
    of_task.Set("examples", Sha256OfText(WriteJson(task.examples())));
    asked.Set(task.name(), std::move(of_task));
  }
  const SubjectOptions subject = options.subject();
  asked.Set("limit", options.limit ? Value(*options.limit) : Value());
  asked.Set("add_bos", subject.add_bos ? Value(*subject.add_bos) : Value());
  asked.Set("max_length", subject.max_length);
  asked.Set("chat_template", subject.apply_chat_template);
  asked.Set("multiturn", !options.one_turn);
  asked.Set("system", options.eval.prompts.system_instruction);
  asked.Set("seed", static_cast<int64_t>(options.eval.prompts.fewshot_seed));
  return Sha256OfText(WriteJson(asked)).substr(0, 16);
}

// The files of a run.
class OutputFolder {
 public:
  OutputFolder(const Options& options, Clock::time_point start)
      : folder_(std::filesystem::path(options.output) / SanitizedModelName(options.model)),
        date_(DateId(start)),
        on_(!options.output.empty()),
        with_samples_(options.log_samples) {}

  // Makes the folder, and finds what an interrupted run of the same name left there.
  Status Open(const std::string& run, const Context& context) {
    if (!on_) return OkStatus();
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) return IoError(fmt::format("{}: {}", folder_.string(), error.message()));
    OCTAVO_ASSIGN_OR_RETURN(journal_,
                            AnswerJournal::Open(folder_ / fmt::format("unfinished_{}.jsonl", run)));
    if (journal_->found() > 0) {
      context.log.Info(fmt::format("going on where an interrupted run was: {} documents are done",
                                   journal_->found()));
    }
    return OkStatus();
  }
  // Null where nothing is written.
  AnswerJournal* journal() const { return journal_.get(); }
  Status WriteSamples(const Task& task, const TaskResult& result) const {
    if (!on_ || !with_samples_) return OkStatus();
    return WriteFileAtomically(folder_ / fmt::format("samples_{}_{}.jsonl", task.name(), date_),
                               SamplesJsonLines(task, result));
  }
  Status WriteResults(const Value& results, const Context& context) const {
    if (!on_) return OkStatus();
    const auto path = folder_ / fmt::format("results_{}.json", date_);
    OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(path, WriteJson(results, {.indent = 2})));
    journal_->Remove();
    context.log.Info(fmt::format("results in {}", path.string()));
    return OkStatus();
  }

 private:
  std::filesystem::path folder_;
  std::string date_;
  bool on_;
  bool with_samples_;
  std::unique_ptr<AnswerJournal> journal_;
};

// All tasks, one after another; each has its samples written when it is done.
Result<std::vector<TaskResult>> RunTasks(const Options& options, const EvalSubject& subject,
                                         const std::vector<Task>& tasks, const OutputFolder& output,
                                         const Context& context) {
  std::vector<TaskResult> results;
  for (const Task& task : tasks) {
    OCTAVO_ASSIGN_OR_RETURN(TaskResult result,
                            RunTask(options, subject, task, subject, output.journal(), context));
    OCTAVO_RETURN_IF_ERROR(output.WriteSamples(task, result));
    results.push_back(std::move(result));
  }
  return results;
}

EvalRunInfo DescribeRun(const Options& options, const EvalSubject& subject, Clock::time_point start,
                        const Context& context) {
  EvalRunInfo info = subject.Describe();
  info.limit = options.limit;
  info.system_instruction = options.eval.prompts.system_instruction;
  if (subject.chat_template() != nullptr) info.fewshot_as_multiturn = !options.one_turn;
  info.batch_size = options.eval.batch_size;
  info.bootstrap_iterations = options.eval.bootstrap_iterations;
  info.fewshot_seed = options.eval.prompts.fewshot_seed;
  info.start_time = SecondsSince1970(start);
  info.seconds = SecondsSince1970(Clock::now()) - info.start_time;
  info.version = OCTAVO_VERSION;
  info.environment = fmt::format("octavo {}, {}, {} threads", OCTAVO_VERSION, IsaName(context.isa),
                                 context.pool.num_threads());
  return info;
}

std::string HeadLine(const EvalRunInfo& info, const Options& options) {
  return fmt::format("octavo ({}), limit: {}, num_fewshot: {}, batch_size: {}\n", info.model,
                     options.limit ? PythonFloat(*options.limit) : "None",
                     options.num_fewshot ? std::to_string(*options.num_fewshot) : "None",
                     info.batch_size ? std::to_string(*info.batch_size) : "auto");
}

// What is not scored is nothing but its samples.
Status AskForSamples(const std::vector<Task>& tasks, Options* options) {
  for (const Task& task : tasks) {
    if (task.is_scored()) continue;
    options->log_samples = true;
    if (options->output.empty()) {
      return InvalidArgument(
          fmt::format("{} is not scored: that takes running what the model writes. Its answers go "
                      "to files, for "
                      "a runner of yours: give --output-path, the folder for them",
                      task.name()));
    }
  }
  return OkStatus();
}

void WarnOfUnscored(const std::vector<Task>& tasks, const Context& context) {
  for (const Task& task : tasks) {
    if (task.is_scored()) continue;
    context.log.Warning(fmt::format(
        "{}: answers only, 999 is no score. Each line of its samples file has a program: "
        "filtered_resps[0][0], then target. Run them where they can do no harm",
        task.name()));
  }
}

Status Run(Options& options, const Context& context) {
  const auto start = Clock::now();
  if (options.tasks == std::vector<std::string>{"list"}) {
    Print(TaskNames());
    return OkStatus();
  }
  if (options.log_samples && options.output.empty())
    return InvalidArgument("--log-samples needs --output-path, the folder to write them to");
  if (options.tasks.empty() && options.task_files.empty())
    return InvalidArgument("there is no task: give --tasks (list: all there are) or --task-file");
  OCTAVO_ASSIGN_OR_RETURN(const TaskSelection selection, ReadTasks(options));
  OCTAVO_RETURN_IF_ERROR(AskForSamples(selection.tasks, &options));
  OCTAVO_ASSIGN_OR_RETURN(const auto subject,
                          EvalSubject::Load(options.model, options.subject(), context));
  OutputFolder output(options, start);
  OCTAVO_RETURN_IF_ERROR(output.Open(Fingerprint(options, selection.tasks), context));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TaskResult> results,
                          RunTasks(options, *subject, selection.tasks, output, context));
  const EvalRunInfo info = DescribeRun(options, *subject, start, context);
  const Value json =
      ResultsJson(info, selection.tasks, results, selection.groups, options.log_samples);
  OCTAVO_RETURN_IF_ERROR(output.WriteResults(json, context));
  WarnOfUnscored(selection.tasks, context);
  if (options.json) {
    Print(WriteJson(json, {.indent = 2}) + "\n");
    return OkStatus();
  }
  std::string text = HeadLine(info, options) + ResultsTable(json, "results");
  if (json.Find("groups") != nullptr) text += "\n" + ResultsTable(json, "groups");
  Print(text);
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description(
      "Score a checkpoint on tasks, by the rules of lm-evaluation-harness 0.4.13: its prompts, "
      "token\nsplits, filters, metrics and files; float32 activations and key/value cache");
  app.footer(
      "Examples:\n"
      "  octavo eval model --tasks gsm8k --limit 250 --data data\n"
      "  octavo eval model --tasks hellaswag,arc_challenge,wikitext --data data\n"
      "  octavo eval model --tasks mmlu --num-fewshot 5 --data data --output-path out "
      "--log-samples\n"
      "  octavo eval model --tasks gsm8k --apply-chat-template --data data\n"
      "  octavo eval model --tasks list                     (tasks, and where their data come "
      "from)\n\n"
      "Data are read from files: DIR/<task>/<split>.jsonl, or as the releases name theirs; a file "
      "that is\nmissing is named with its source. tools/fetch-data lists them and converts "
      "Parquet.\n"
      "acc and exact_match are shares of right answers; Stderr is the standard error of the "
      "figure: two figures\ncloser than about twice that may differ by chance.");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder")->required();
  AddTaskFlags(app, options.get());
  app.add_option("--output-path", options->output,
                 "Folder for results_*.json, in a folder named after the model; a run that was "
                 "interrupted goes on there when the same command is given again");
  app.add_flag("--log-samples", options->log_samples,
               "Also write samples_*.jsonl: every prompt, answer and score");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kEvalCommand;
const Command kEvalCommand = {"eval", Add};

}  // namespace octavo
