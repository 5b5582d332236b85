// Modifier: one step of a recipe, as llm-compressor names them (SmoothQuantModifier, GPTQModifier
// ...).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "compress/block_work.h"
#include "model/graph.h"
#include "quant/config.h"

namespace octavo {

class Modifier {
 public:
  virtual ~Modifier() = default;

  // The recipe's name and settings, as the saved recipe.yaml has them.
  virtual std::string_view class_name() const = 0;
  virtual Value settings() const = 0;

  // What it quantizes: targets, schemes, ignore; null for one that only transforms.
  virtual const QuantizationConfig* quantization() const { return nullptr; }

  // Checks against the graph everything that can be checked before hours of work: mappings that
  // resolve to nothing, shapes.
  virtual Status Check(const Model& graph, Logger& log) const = 0;

  // What it must know of the inputs; all false: it needs no calibration data.
  virtual StatisticsNeeds needs() const { return {}; }

  // Changes weights, or decides codes, of one block. Errors name the layer.
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
