// Where a quantized model loses what it loses: the error of each linear layer and of each block.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "base/value.h"
#include "eval/windows.h"
#include "runtime/load.h"

namespace octavo {

// Of y' against y, over all positions and channels.
struct OutputError {
  double relative = 0;  // ||y' - y||^2 / ||y||^2
  double cosine = 1;    // y . y' / (||y|| ||y'||)
};

struct ComparedLayer {
  std::string name;        // "model.layers.3.self_attn.q_proj"
  int64_t block = 0;       // 3
  std::string projection;  // "q_proj"
  std::string scheme;      // "W8A8"; "" where it is not quantized
  // Given the base's own input, scaled as the model's smoothing scales it. None: not comparable.
  std::optional<OutputError> output;
  std::optional<double> weight_sqnr_db;  // LayerRelation's
  // Of the input: the largest magnitude of each channel, the largest channel's over the median's;
  // in the base, and as the model's layer gets it: smoothed, transformed.
  double outliers_before = 0;
  double outliers_after = 0;
};

struct ComparedBlock {
  std::string name;
  // Of the hidden states behind the block: given the base's hidden states before it, and given what
  // the model's own blocks made so far. None: not comparable.
  std::optional<OutputError> alone;
  std::optional<OutputError> accumulated;
};

struct LayerComparison {
  int64_t positions = 0;
  std::vector<ComparedLayer> layers;  // in the order of the model; the head is not among them
  std::vector<ComparedBlock> blocks;
  // What could not be compared and why, a sentence each.
  std::vector<std::string> notes;
};

// InvalidArgument when the models' sizes differ. Both are loaded; memory: the hidden states of all
// positions twice, and the outputs of one block's layers for kRowsPerPass positions.
//
// "The base's own input" of a layer is what the base's layer reads in the base. A checkpoint that
// was smoothed reads it scaled; the scales are undone as RelateBlocks finds them, and an output
// that is handed on scaled is compared in the base's units.
Result<LayerComparison> CompareLayers(const LoadedModel& base, const LoadedModel& model,
                                      std::span<const Window> windows, const Context& context);

// {"positions", "layers": [{"name", ...}], "blocks": [...], "notes"}; what is not comparable is
// null.
Value ToJson(const LayerComparison& comparison);
// The layers by error, largest first: `rows` of them, 0 for all; and the blocks with the largest
// error of their own.
std::string LayerTable(const LayerComparison& comparison, int64_t rows);

}  // namespace octavo
