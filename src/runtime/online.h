// What a checkpoint asks to be done while the model runs, beside its linear layers' schemes:
// transforms, and the rounding of queries, keys and values.
#pragma once

#include <set>
#include <string>

#include "base/context.h"
#include "base/status.h"
#include "io/checkpoint.h"
#include "model/graph.h"
#include "quant/config.h"

namespace octavo {

// Names of tensors.
using TensorNameSet = std::set<std::string, std::less<>>;

// Gives each linear layer and each block of the graph its transforms, and returns the names of the
// tensors of their matrices. What cannot be done is Unsupported and named.
Result<TensorNameSet> LoadTransforms(const Value& transform_config, const Checkpoint& checkpoint,
                                     Model* model);

// Gives each linear layer and each block of the graph its transforms, cache codec and query scales,
// and returns the names of the tensors that are theirs. What cannot be done is Unsupported and
// named; what was done otherwise than declared is a warning.
Result<TensorNameSet> LoadOnline(const QuantizationConfig& config, const Checkpoint& checkpoint,
                                 Model* model, const Context& context);

}  // namespace octavo
