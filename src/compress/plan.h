// The plan of a quantization: which layer gets which scheme from which modifier, and every tensor
// that will be written.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "compress/recipe.h"
#include "compress/resolve.h"
#include "io/checkpoint_writer.h"
#include "model/graph.h"
#include "quant/config.h"
#include "runtime/load.h"

namespace octavo {

struct QuantizationPlan {
  Model target;                           // the graph with each layer's declared quantization
  LayerOwners owners;                     // of the layers that are quantized
  QuantizationConfig config;              // what the output's config.json will declare
  std::vector<PlannedTensor> tensors;     // of the output
  std::set<std::string> unknown_tensors;  // no module of the graph has them: copied as they are
  // The head was the embedding's tensor until now, and one of them is quantized, or both, but
  // otherwise: the output has both.
  bool unties_head = false;
  // Or both are quantized alike, to the same codes: the head goes on being the embedding's tensors.
  bool keeps_tie = false;
  // The head was the embedding's tensor until it was rotated; the source has both by now.
  bool rotation_unties_head = false;
  // Of what the recipe rotates (rotate_model.h): what config.json declares, and the tensors of
  // matrices. No object and none where nothing is rotated.
  Value transform_config = {};
  TensorNameSet online_tensors = {};
  bool rotates() const { return transform_config.is_object(); }
  StatisticsNeeds needs;               // of all modifiers and static inputs together
  std::vector<std::string> needed_by;  // who needs calibration data, for messages
  bool needs_data() const { return needs.any() || quantizes_attention(); }
  // Keys and values are kept as codes, in all blocks.
  bool quantizes_attention() const { return config.kv_cache_scheme.has_value(); }
  bool quantizes_head() const {
    return target.head.layers.front().quantization.weights.has_value() && !keeps_tie;
  }
  bool quantizes_embedding() const {
    return target.embedding_layer.quantization.weights.has_value();
  }
  // The source's tensor that one of the output's is a copy of.
  std::string SourceOf(const std::string& tensor) const;
};

// Resolves the recipe against the source's graph, rotates the source (rotate_model.h) and checks
// everything that can be checked before any work (resolve.h, Modifier::Check). `context` outlives
// the source.
Result<QuantizationPlan> MakePlan(LoadedModel* source, const Recipe& recipe,
                                  const Context& context);

}  // namespace octavo
