// Sensitivity: how much the predictions of a model change when some of its layers are quantized,
// and nothing else is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "base/value.h"
#include "eval/windows.h"
#include "runtime/load.h"

namespace octavo {

struct SensitivityOptions {
  int64_t tokens = 1024;    // of the windows that are run
  int64_t positions = 512;  // of these, evenly spread, at which predictions are compared
};

// Layers of `model` that are put in the place of the base's: a group of one block, with the norm
// whose output it reads.
struct Replacement {
  LoadedModel* model = nullptr;
  int64_t block = 0;
  size_t group = 0;  // of Block::groups()
};

// Carries the base's hidden states from block to block, so that what a replacement changes is
// computed from its block on.
class SensitivityProbe {
 public:
  // Runs the base once and keeps its logits, [positions, vocab] float32, and the hidden states
  // before the first block. `base` and `context` outlive the probe; `base` is loaded, and is
  // changed while Divergence runs. InvalidArgument for windows longer than the model's positions.
  static Result<std::unique_ptr<SensitivityProbe>> Make(LoadedModel* base,
                                                        std::span<const Window> windows,
                                                        const SensitivityOptions& options,
                                                        const Context& context);
  ~SensitivityProbe();

  // The mean of KL(base || base with the replacements), in nats. Their models have the base's sizes
  // and are loaded, and none is of a block before block().
  double Divergence(std::span<const Replacement> replacements);

  // The block whose input is kept; Advance goes on to the next.
  int64_t block() const;
  void Advance();
  int64_t positions() const;

 private:
  struct Body;
  explicit SensitivityProbe(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

// Layers that are quantized together, as engines run them: q, k and v; o; gate and up; down. Where
// smoothing or a rotation ties two groups (BlockRelation), both.
struct LayerUnit {
  int64_t block = 0;
  std::vector<size_t> groups;  // of Block::groups()
  std::vector<std::string> layers;
};

struct UnitSensitivity {
  LayerUnit unit;
  double kl = 0;  // of this unit alone quantized
};

// Of each of the models, the sensitivity of each of its units that is quantized, in the order of
// the model. Beside the probe's memory all models are in memory. Unsupported for a model that was
// rotated as a whole: none of its layers fits the base.
Result<std::vector<std::vector<UnitSensitivity>>> MeasureSensitivities(
    LoadedModel* base, std::span<LoadedModel* const> models, std::span<const Window> windows,
    const SensitivityOptions& options, const Context& context);

// [{"layers": [...], "block", "kl"}], in the order of the model.
Value ToJson(std::span<const UnitSensitivity> sensitivities);
// By KL, largest first: `rows` of them, 0 for all; each with its share of the sum.
std::string SensitivityTable(std::span<const UnitSensitivity> sensitivities, int64_t rows);

}  // namespace octavo
