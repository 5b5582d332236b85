#include "apps/compare_checkpoints.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>

#include "eval/paired_tasks.h"
#include "eval/prompts.h"
#include "eval/task_windows.h"
#include "runtime/load.h"

namespace octavo {

namespace {

// An argument as a shell takes it.
std::string Quoted(const std::string& argument) {
  const bool plain = !argument.empty() && std::all_of(argument.begin(), argument.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./=,:+%@").find(c) != std::string_view::npos;
  });
  if (plain) return argument;
  std::string quoted = "'";
  for (const char c : argument) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// That of this process, as the system has it.
std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::string line = "octavo";
  for (size_t at = bytes.find('\0'); at != std::string::npos && at + 1 < bytes.size();) {
    const size_t end = bytes.find('\0', at + 1);
    line += " " + Quoted(bytes.substr(at + 1, end - at - 1));
    at = end;
  }
  return line;
}

std::string DateNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &utc)};
}

// Version, machine, command line and date of this run.
ComparisonRun DescribeComparisonRun(const Context& context) {
  return {.version = OCTAVO_VERSION,
          .environment =
              fmt::format("{}, {} threads", IsaName(context.isa), context.pool.num_threads()),
          .command_line = CommandLine(),
          .date = DateNow()};
}

// A checkpoint in memory: with all that tasks ask for, where there are some.
struct Loaded {
  std::unique_ptr<EvalSubject> subject;
  std::unique_ptr<LoadedModel> without_tasks;

  const LoadedModel& model() const { return subject ? subject->loaded() : *without_tasks; }
  LoadedModel* mutable_model() {
    return subject ? &subject->mutable_loaded() : without_tasks.get();
  }
};

Result<std::vector<Loaded>> LoadAll(const ComparisonRequest& request,
                                    const std::vector<std::string>& folders,
                                    const Context& context) {
  std::vector<Loaded> all;
  for (const std::string& folder : folders) {
    Loaded& loaded = all.emplace_back();
    if (request.tasks != nullptr) {
      OCTAVO_ASSIGN_OR_RETURN(loaded.subject,
                              EvalSubject::Load(folder, request.tasks->subject(), context));
    } else {
      OCTAVO_ASSIGN_OR_RETURN(loaded.without_tasks, LoadModel(folder, {}, context));
    }
  }
  return all;
}

// The base first.
Result<std::vector<ComparedModel>> DescribeAll(const ComparisonRequest& request,
                                               const std::vector<Loaded>& all,
                                               const std::vector<std::string>& labels,
                                               std::span<const Window> windows,
                                               const Context& context) {
  std::vector<ComparedModel> described;
  for (size_t i = 0; i < all.size(); ++i) {
    ComparedModel& model = described.emplace_back(DescribeModel(all[i].model(), labels[i]));
    if (request.provenance) {
      OCTAVO_ASSIGN_OR_RETURN(model.provenance, FindProvenance(all[i].model().checkpoint()));
    }
    if (windows.empty() || !request.speed) continue;
    OCTAVO_ASSIGN_OR_RETURN(model.speed,
                            MeasureSpeed(all[i].model().model(), windows.front().tokens, context));
  }
  return described;
}

// What is read in lockstep, and what it is of.
struct Reading {
  std::vector<Window> windows;
  std::string text;
};

Result<Reading> ReadAnswers(const TaskFlags& flags, const TaskSelection& selection,
                            const EvalSubject& base) {
  Reading reading{.windows = {}, .text = "the right answers of"};
  for (const Task& task : selection.tasks) {
    const EvalOptions eval = EvalOptionsOf(flags, task, base);
    const int64_t limit = eval.limit > 0 ? eval.limit : std::ssize(task.documents());
    OCTAVO_ASSIGN_OR_RETURN(const auto prompts, BuildPrompts(task, limit, eval.prompts));
    OCTAVO_ASSIGN_OR_RETURN(
        const std::vector<Window> windows,
        TaskWindows(base.evaluated(), task, prompts, eval.prompts.chat_template != nullptr));
    reading.windows.insert(reading.windows.end(), windows.begin(), windows.end());
    reading.text += fmt::format("{} {} ({})", reading.windows.size() == windows.size() ? "" : ",",
                                task.name(), prompts.size());
  }
  return reading;
}

Result<std::vector<std::vector<PairedTask>>> CompareTasks(const ComparisonRequest& request,
                                                          const std::vector<Loaded>& all,
                                                          const std::vector<std::string>& labels,
                                                          const TaskSelection& selection,
                                                          const Context& context) {
  std::vector<std::vector<TaskResult>> results(all.size());
  for (const Task& task : selection.tasks) {
    for (size_t i = 0; i < all.size(); ++i) {
      auto result =
          RunTask(*request.tasks, *all[i].subject, task, *all.front().subject, nullptr, context);
      if (!result.ok()) return result.status().Annotate(labels[i]);
      results[i].push_back(std::move(result).value());
    }
  }
  std::vector<std::vector<PairedTask>> paired;
  for (size_t i = 1; i < all.size(); ++i) {
    paired.push_back(PairTasks({.tasks = selection.tasks,
                                .groups = selection.groups,
                                .base = results.front(),
                                .model = results[i]},
                               labels[i], context.pool));
  }
  return paired;
}

}  // namespace

Result<Comparison> CompareCheckpoints(const ComparisonRequest& request, const Context& context) {
  TaskSelection selection;
  if (request.tasks != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(selection, ReadTasks(*request.tasks));
    for (const Task& task : selection.tasks) {
      if (!task.is_scored())
        return InvalidArgument(task.name() + " is not scored, and gives nothing to compare");
    }
  }
  std::vector<std::string> folders = {request.base};
  folders.insert(folders.end(), request.models.begin(), request.models.end());
  const std::vector<std::string> labels = ModelLabels(folders);
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Loaded> all, LoadAll(request, folders, context));
  Comparison comparison;
  comparison.run = DescribeComparisonRun(context);
  Reading reading{request.windows, request.text};
  if (request.reads_answers) {
    OCTAVO_ASSIGN_OR_RETURN(reading, ReadAnswers(*request.tasks, selection, *all.front().subject));
  }
  comparison.text = reading.text;
  if (!reading.windows.empty()) {
    std::vector<NamedModel> named;
    named.reserve(all.size());
    for (size_t i = 0; i < all.size(); ++i) named.push_back({folders[i], all[i].model().model()});
    OCTAVO_ASSIGN_OR_RETURN(
        comparison.lockstep,
        Lockstep(named.front(), std::span(named).subspan(1), reading.windows, context));
  }
  if (request.layers.any()) {
    std::vector<LoadedModel*> models;
    models.reserve(all.size());
    for (Loaded& loaded : all) models.push_back(loaded.mutable_model());
    OCTAVO_RETURN_IF_ERROR(MeasureLayers(request.layers, models.front(),
                                         std::span(models).subspan(1), reading.windows, context,
                                         &comparison));
  }
  if (request.tasks != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(comparison.tasks,
                            CompareTasks(request, all, labels, selection, context));
  }
  OCTAVO_ASSIGN_OR_RETURN(comparison.models,
                          DescribeAll(request, all, labels, reading.windows, context));
  comparison.base = std::move(comparison.models.front());
  comparison.models.erase(comparison.models.begin());
  comparison.bounds = CheckBounds(request.bounds, comparison);
  return comparison;
}

void AddGateFlags(CLI::App& app, const std::string& prefix, GateBounds* bounds) {
  app.add_option("--" + prefix + "max-kl", bounds->max_kl,
                 "Bound: mean KL divergence in nats; exit code 3 where a bound is missed")
      ->check(CLI::NonNegativeNumber);
  app.add_option_function<std::string>(
         "--" + prefix + "max-ppl-increase",
         [bounds](const std::string& text) {
           if (const auto share = ParseShare(text); share.ok())
             bounds->max_perplexity_increase = *share;
         },
         "Bound: how much the perplexity may rise, 1% or 0.01")
      ->check([](const std::string& text) {
        const auto share = ParseShare(text);
        return share.ok() ? std::string() : share.status().message();
      });
}

}  // namespace octavo
