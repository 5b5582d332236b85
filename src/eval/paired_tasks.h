// Two models on the same questions: how much of the original's score is kept, and whether what is
// lost can be told from chance.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "eval/evaluate.h"
#include "eval/paired_statistics.h"
#include "eval/task.h"
#include "eval/task_definition.h"

namespace octavo {

// Of a figure that is a share of right answers.
struct McNemar {
  int64_t only_base = 0;  // questions that only the base answered right
  int64_t only_model = 0;
  double p = 1;
  // The smallest difference of the shares that would be significant at 5 %, for as many questions
  // on which the two disagree.
  double threshold = 0;
};

struct PairedFigure {
  std::string metric;
  std::string filter;
  bool higher_is_better = true;
  double base = 0;
  double model = 0;
  // Percent: model / base, the other way round where lower is better. Nothing for a base of zero.
  std::optional<double> recovery;
  Interval difference;             // of model - base, 95 %, by the paired bootstrap
  std::optional<McNemar> mcnemar;  // of shares of right answers
  std::string sentence;            // what it comes to, for people
};

struct PairedTask {
  std::string name;
  int64_t documents = 0;
  std::vector<PairedFigure> figures;
};

// What each model came to on each task.
struct TaskRuns {
  std::span<const Task> tasks;
  std::span<const TaskGroup> groups;
  std::span<const TaskResult> base;
  std::span<const TaskResult> model;
};

// A task each, then the groups that have a figure, over all their documents. `label` names the
// model in sentences. All are scored tasks.
std::vector<PairedTask> PairTasks(const TaskRuns& runs, const std::string& label, ThreadPool& pool);

}  // namespace octavo
