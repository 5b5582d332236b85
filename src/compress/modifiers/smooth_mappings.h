// SmoothQuant's mappings: which norms are smoothed into which layers (quantization 5.3.3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "compress/block_work.h"
#include "model/graph.h"
#include "quant/pattern.h"

namespace octavo {

// Layers that a norm feeds, and the norm, by patterns.
struct SmoothMapping {
  std::vector<ModulePattern> balance_layers;
  std::vector<ModulePattern> smooth_layer;
  std::string text;  // for messages
};

// The mappings of one SmoothQuantModifier, and what it ignores.
class SmoothMappings {
 public:
  // `mappings`: a list of [[patterns of layers], pattern of the norm], or null for every norm that
  // feeds linear layers, with all that it feeds. `ignore`: patterns, or null. `where` and
  // `where_ignore` name the two in messages.
  static Result<SmoothMappings> Parse(const Value* mappings, std::string_view where,
                                      const Value* ignore, std::string_view where_ignore);

  // The number of norms that will be smoothed. Refused, with what the model has instead: a mapping
  // whose norm is not there, is no norm, or does not feed the layers it names; one that leaves out
  // a layer that the norm feeds, which would compute something else after smoothing; none left.
  Result<int64_t> Check(const Model& graph) const;

  // Whether the norm is smoothed into the layers that it feeds; only for graphs that Check accepts.
  Result<bool> Applies(std::string_view norm, const std::vector<std::string_view>& layers) const;

 private:
  bool all_norms_ = true;
  std::vector<SmoothMapping> mappings_;
  std::vector<ModulePattern> ignore_;
};

}  // namespace octavo
