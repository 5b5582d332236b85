#include "eval/metric_values.h"

namespace octavo {

double MetricValues::Figure() const {
  if (aggregation == "weighted_perplexity") return WeightedPerplexity(weighted);
  if (aggregation == "bits_per_byte") return BitsPerByte(weighted);
  if (aggregation == "perplexity") return PerplexityOf(values);
  return Mean(values);
}

std::optional<double> MetricValues::Error(int64_t iterations, ThreadPool& pool) const {
  if (!weighted.empty() || iterations == 0) return std::nullopt;
  if (aggregation == "perplexity") return PerplexityStderr(values, iterations, pool);
  return MeanStderr(values);
}

MetricValues MetricValues::Drawn(std::span<const size_t> indices) const {
  MetricValues drawn{.aggregation = aggregation, .values = {}, .weighted = {}};
  for (const size_t index : indices) {
    if (weighted.empty()) {
      drawn.values.push_back(values[index]);
    } else {
      drawn.weighted.push_back(weighted[index]);
    }
  }
  return drawn;
}

MetricValues ValuesOf(const TaskMetric& metric, size_t index,
                      std::span<const DocumentScore> scores) {
  MetricValues result{.aggregation = metric.aggregation, .values = {}, .weighted = {}};
  for (const DocumentScore& score : scores) {
    const Value& value = score.metrics[index].second;
    if (value.is_array()) {
      result.weighted.push_back({value.as_array()[0].as_double(), value.as_array()[1].as_int()});
    } else {
      result.values.push_back(value.as_double());
    }
  }
  return result;
}

}  // namespace octavo
