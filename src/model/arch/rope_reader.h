// The rotary embedding of a config.json, in all its spellings.
#pragma once

#include "base/status.h"
#include "base/value.h"
#include "model/spec.h"

namespace octavo {

// Sets spec->rope from "rope_theta" and "rope_scaling" (transformers 4, there also with "type") or
// "rope_parameters" (5), and stretches spec->max_positions by what the scaling says. Needs
// spec->head_dim and max_positions ("max_position_embeddings"). InvalidArgument names the key;
// Unsupported a kind that is not here, parameters by layer type and partial rotation.
Status ReadRope(const Value& config, ModelSpec* spec);

}  // namespace octavo
