// One run of quantize: what its steps share.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/usage.h"
#include "compress/journal.h"
#include "compress/plan.h"
#include "compress/recipe.h"
#include "compress/report.h"
#include "io/work_folder.h"
#include "octavo/quantize.h"
#include "runtime/load.h"
#include "text/dataset.h"

namespace octavo {

// Time and processor time since the last Take.
class Stopwatch {
 public:
  void Take(double* seconds, double* cpu_seconds) {
    const auto now = std::chrono::steady_clock::now();
    const double cpu_now = CpuSeconds();
    *seconds = std::chrono::duration<double>(now - start_).count();
    *cpu_seconds = cpu_now - cpu_start_;
    start_ = now;
    cpu_start_ = cpu_now;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double cpu_start_ = CpuSeconds();
};

// What one pass through the recipe shares from block to block.
struct Run {
  const QuantizeOptions& options;
  const Recipe& recipe;
  LoadedModel* source;
  QuantizationPlan* plan;
  const Dataset& dataset;
  std::shared_ptr<const WorkFolder> folder;
  Journal* journal;
  QuantizationReport* report;
  Stopwatch* stopwatch;
  bool hidden_in_memory;

  int64_t num_blocks() const { return source->model().spec.num_layers; }
};

}  // namespace octavo
