// What the documents of a task contribute to one figure of it, and the figure they make.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "eval/evaluate.h"
#include "eval/statistics.h"

namespace octavo {

struct MetricValues {
  std::string aggregation;                      // as TaskMetric has it
  std::vector<double> values;                   // of each document, where it gives one number
  std::vector<WeightedLoglikelihood> weighted;  // where it gives two

  int64_t documents() const { return std::ssize(values) + std::ssize(weighted); }
  double Figure() const;
  // Its standard error; nothing where there is none, or no `iterations`.
  std::optional<double> Error(int64_t iterations, ThreadPool& pool) const;
  // Those of the documents of these indices.
  MetricValues Drawn(std::span<const size_t> indices) const;
};

// The metric with index `index` of the scores.
MetricValues ValuesOf(const TaskMetric& metric, size_t index,
                      std::span<const DocumentScore> scores);

}  // namespace octavo
