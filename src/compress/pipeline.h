// The flow that makes a quantized checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/context.h"
#include "base/status.h"
#include "compress/recipe.h"
#include "compress/report.h"
#include "text/dataset.h"

namespace octavo {

// What the next block is calibrated on.
enum class Propagate : uint8_t {
  kFull,     // outputs of the quantized block as it will be served: its own kernels and activations
  kWeights,  // outputs of the block with quantized weights and float activations
  kNone,     // outputs of the original block
};

struct QuantizeOptions {
  std::filesystem::path model;
  std::filesystem::path out;
  std::filesystem::path calibration;  // empty: none (recipes that need no data)
  DatasetOptions dataset;
  Propagate propagate = Propagate::kWeights;  // why: docs/numerics.md
  int64_t max_shard_bytes = 20'000'000'000;
  int64_t memory_bytes = 0;  // what the run may take; 0: no limit given (see estimate.h)
  bool force = false;        // replace an existing output
  bool restart = false;      // drop what an interrupted run left, instead of going on with it
  bool dry_run = false;      // resolve, check, estimate and report, write nothing
};

// Quantizes `model` by the recipe into `out`, block by block: memory holds one block and, where
// there is room, the calibration tokens' hidden states. Nothing exists under `out` before the
// result was reopened and checked. A run that was killed, cancelled or stopped by a full disk
// leaves "<out>.unfinished"; the same call goes on after the last block that was done, and ends
// with the same bytes. A call that asks for something else is refused, unless `restart` is set.
Result<QuantizationReport> Quantize(const QuantizeOptions& options, const Recipe& recipe,
                                    const Context& context);

}  // namespace octavo
