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
  bool force = false;    // replace an existing output
  bool dry_run = false;  // resolve, check and report, write nothing
};

// Quantizes `model` by the recipe into `out`, block by block: memory holds one block and the
// calibration tokens' hidden states. Nothing exists under `out` before the result was reopened and
// checked.
Result<QuantizationReport> Quantize(const QuantizeOptions& options, const Recipe& recipe,
                                    const Context& context);

}  // namespace octavo
