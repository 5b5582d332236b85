// The plan of a quantization: which layer gets which scheme from which modifier, and every tensor
// that will be written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "compress/recipe.h"
#include "io/checkpoint_writer.h"
#include "model/graph.h"
#include "quant/config.h"
#include "runtime/load.h"

namespace octavo {

struct QuantizationPlan {
  Model target;  // the graph with each layer's declared quantization
  std::map<std::string, const Modifier*> owners;  // layer -> the modifier that quantizes it
  QuantizationConfig config;                      // what the output's config.json will declare
  std::vector<PlannedTensor> tensors;             // of the output
  StatisticsNeeds needs;                          // of all modifiers together
  bool needs_data() const { return needs.channel_range || needs.hessian; }
};

// Resolves the recipe against the source's graph and checks everything that can be checked before
// any work: patterns that match nothing (a warning each), schemes that nobody can run, layers that
// share an input but would get different schemes, mappings that resolve to nothing.
Result<QuantizationPlan> MakePlan(const LoadedModel& source, const Recipe& recipe, Logger& log);

}  // namespace octavo
