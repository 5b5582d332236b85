#include "eval/paired_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/metric_values.h"
#include "eval/task_list.h"

namespace octavo {

namespace {

constexpr uint64_t kBootstrapSeed = 1234;
constexpr double kSignificant = 0.05;

// A figure of both, before it is compared.
struct Pair {
  std::string metric;
  std::string filter;
  bool higher_is_better;
  MetricValues base;
  MetricValues model;
};

bool IsShareOfRight(const MetricValues& values) {
  return values.aggregation == "mean" &&
         std::all_of(values.values.begin(), values.values.end(),
                     [](double value) { return value == 0 || value == 1; });
}

McNemar TestOf(const Pair& pair) {
  McNemar test;
  for (size_t i = 0; i < pair.base.values.size(); ++i) {
    test.only_base += pair.base.values[i] > pair.model.values[i] ? 1 : 0;
    test.only_model += pair.base.values[i] < pair.model.values[i] ? 1 : 0;
  }
  test.p = McNemarTest(test.only_base, test.only_model);
  test.threshold = static_cast<double>(SmallestSignificant(test.only_base + test.only_model)) /
                   static_cast<double>(pair.base.documents());
  return test;
}

std::optional<double> Recovery(double base, double model, bool higher_is_better) {
  const double reference = higher_is_better ? base : model;
  if (reference == 0) return base == model ? std::optional(100.0) : std::nullopt;
  return 100 * (higher_is_better ? model / base : base / model);
}

std::string ShareSentence(const PairedFigure& figure, const std::string& label, int64_t documents) {
  const McNemar& test = *figure.mcnemar;
  const double points = 100 * (figure.model - figure.base);
  const std::string scores = points == 0
                                 ? fmt::format("{} scores the same", label)
                                 : fmt::format("{} scores {:.1f} points {}", label,
                                               std::abs(points), points < 0 ? "lower" : "higher");
  if (test.p < kSignificant) {
    return fmt::format("{}; with {} questions that is more than chance (p = {:.2g})", scores,
                       documents, test.p);
  }
  return fmt::format("{}; with {} questions a difference below {:.1f} cannot be told from chance",
                     scores, documents, 100 * test.threshold);
}

std::string MeanSentence(const PairedFigure& figure, const std::string& label) {
  const double change = figure.model - figure.base;
  const bool certain = figure.difference.low > 0 || figure.difference.high < 0;
  return fmt::format("{}'s {} is {:.4g} {} (95 % interval {:+.3g} to {:+.3g}){}", label,
                     figure.metric, std::abs(change), change < 0 ? "lower" : "higher",
                     figure.difference.low, figure.difference.high,
                     certain ? "" : ", which cannot be told from chance");
}

PairedFigure Compare(const Pair& pair, const std::string& label, ThreadPool& pool) {
  PairedFigure figure{.metric = pair.metric,
                      .filter = pair.filter,
                      .higher_is_better = pair.higher_is_better,
                      .base = pair.base.Figure(),
                      .model = pair.model.Figure(),
                      .recovery = {},
                      .difference = {},
                      .mcnemar = {},
                      .sentence = {}};
  figure.recovery = Recovery(figure.base, figure.model, figure.higher_is_better);
  const int64_t documents = pair.base.documents();
  figure.difference =
      PairedBootstrap(documents, kBootstrapSeed, pool, [&](std::span<const size_t> drawn) {
        return pair.model.Drawn(drawn).Figure() - pair.base.Drawn(drawn).Figure();
      });
  if (IsShareOfRight(pair.base) && IsShareOfRight(pair.model)) {
    figure.mcnemar = TestOf(pair);
    figure.sentence = ShareSentence(figure, label, documents);
  } else {
    figure.sentence = MeanSentence(figure, label);
  }
  return figure;
}

std::vector<Pair> PairsOf(const Task& task, const TaskResult& base, const TaskResult& model) {
  std::vector<Pair> pairs;
  for (size_t filter = 0; filter < base.scores.size(); ++filter) {
    for (size_t metric = 0; metric < task.metrics().size(); ++metric) {
      const TaskMetric& of = task.metrics()[metric];
      pairs.push_back({of.name, task.filters()[filter].name(), of.higher_is_better,
                       ValuesOf(of, metric, base.scores[filter]),
                       ValuesOf(of, metric, model.scores[filter])});
    }
  }
  return pairs;
}

PairedTask ComparePairs(std::string name, const std::vector<Pair>& pairs, const std::string& label,
                        ThreadPool& pool) {
  PairedTask task{.name = std::move(name), .documents = 0, .figures = {}};
  for (const Pair& pair : pairs) {
    task.documents = pair.base.documents();
    task.figures.push_back(Compare(pair, label, pool));
  }
  return task;
}

void Append(const MetricValues& values, MetricValues* all) {
  all->values.insert(all->values.end(), values.values.begin(), values.values.end());
}

// The documents of all tasks under a group, for its metric, behind the first filter.
std::vector<Pair> PairsOf(const TaskGroup& group, const TaskRuns& runs) {
  const std::vector<std::string> members = TasksOfGroup(group, runs.groups);
  std::optional<Pair> all;
  for (size_t i = 0; i < runs.tasks.size(); ++i) {
    if (std::find(members.begin(), members.end(), runs.tasks[i].name()) == members.end()) continue;
    for (Pair& pair : PairsOf(runs.tasks[i], runs.base[i], runs.model[i])) {
      if (pair.metric != group.metric) continue;
      if (!all) {
        all = std::move(pair);
      } else {
        Append(pair.base, &all->base);
        Append(pair.model, &all->model);
      }
      break;
    }
  }
  return all ? std::vector<Pair>{*std::move(all)} : std::vector<Pair>();
}

}  // namespace

std::vector<PairedTask> PairTasks(const TaskRuns& runs, const std::string& label,
                                  ThreadPool& pool) {
  std::vector<PairedTask> paired;
  for (size_t i = 0; i < runs.tasks.size(); ++i) {
    const auto pairs = PairsOf(runs.tasks[i], runs.base[i], runs.model[i]);
    paired.push_back(ComparePairs(runs.tasks[i].name(), pairs, label, pool));
  }
  for (const TaskGroup& group : runs.groups) {
    if (group.metric.empty()) continue;
    const auto pairs = PairsOf(group, runs);
    if (!pairs.empty()) paired.push_back(ComparePairs(group.name, pairs, label, pool));
  }
  return paired;
}

}  // namespace octavo
