// Modifier: one step of a recipe, as llm-compressor names them (SmoothQuantModifier, GPTQModifier
// ...).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "compress/block_work.h"
#include "model/graph.h"
#include "quant/config.h"
#include "quant/transforms.h"

namespace octavo {

// What a model is multiplied by before anything else is done (rotate_model.h).
struct ModelTransforms {
  std::vector<TransformUse> uses;
  // The gain of each norm goes into the layers behind it first, and becomes 1: only then does a
  // rotation of the hidden states commute with the norms.
  bool folds_norms = false;
  uint64_t seed = 0;  // of random matrices
};

class Modifier {
 public:
  virtual ~Modifier() = default;

  // The recipe's name and settings, as the saved recipe.yaml has them.
  virtual std::string_view class_name() const = 0;
  virtual Value settings() const = 0;

  // What it quantizes: targets, schemes, ignore; null for one that only transforms.
  virtual const QuantizationConfig* quantization() const { return nullptr; }

  // The transforms that it makes of this model; none: it makes none.
  virtual Result<std::optional<ModelTransforms>> Transforms(const Model& graph) const {
    static_cast<void>(graph);
    return std::optional<ModelTransforms>();
  }

  // Checks against the graph everything that can be checked before hours of work: mappings that
  // resolve to nothing, shapes.
  virtual Status Check(const Model& graph, Logger& log) const = 0;

  // What it must know of the inputs; all false: it needs no calibration data.
  virtual StatisticsNeeds needs() const { return {}; }

  // Changes weights, or decides codes, of one block. Errors name the layer. What its transforms do
  // is done already.
  virtual Status Apply(BlockWork* block, const Context& context) const = 0;
};

// One line of modifiers.inc.
struct ModifierClass {
  std::string_view class_name;
  // `where` names the place in the recipe for messages; an unknown key is InvalidArgument naming it
  // and the nearest known one.
  Result<std::unique_ptr<Modifier>> (*parse)(const Value& settings, std::string_view where,
                                             Logger& log);
};

}  // namespace octavo
