// quantization_report.json: what was done to each layer and what it cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "compress/block_work.h"

namespace octavo {

struct LayerReport {
  std::string name;
  std::string method;
  std::string note;
  // Squared output error over the calibration tokens as a share of the output's energy, ||X (W -
  // Wq)^T||^2 / ||X W^T||^2; of the weights alone where no calibration data was needed.
  double error_to_nearest = 0;
  double error = 0;

  Value ToJson() const;
  static Result<LayerReport> FromJson(const Value& json);
};

// What a run was expected to take, before it began.
struct Estimate {
  double seconds = 0;
  int64_t memory_bytes = 0;
  int64_t output_bytes = 0;
  int64_t work_bytes = 0;  // on disk beside the output, until it is finished
  bool hidden_in_memory = true;

  Value ToJson() const;
};

struct QuantizationReport {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t truncated_samples = 0;
  int64_t source_bytes = 0;
  int64_t output_bytes = 0;
  double seconds = 0;
  double cpu_seconds = 0;
  int64_t peak_rss_bytes = 0;
  std::vector<LayerReport> layers;
  std::optional<Estimate> estimate;  // of a dry run

  // Layers with a note: a fallback, a raised damping.
  int64_t layers_with_notes() const;
  Value ToJson() const;
  static Result<QuantizationReport> FromJson(const Value& json);
};

}  // namespace octavo
