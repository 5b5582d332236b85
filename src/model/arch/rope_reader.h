// The rotary embedding of a config.json, in all its spellings.
#pragma once

#include "base/status.h"
#include "base/value.h"
#include "model/spec.h"

namespace octavo {

// Sets spec->rope from "rope_theta" (`theta` where it is missing) and "rope_scaling" (transformers
// 4, there also with "type") or "rope_parameters" (5), and stretches spec->max_positions by what
// the scaling says. Needs spec->head_dim, rotary_dim and max_positions ("max_position_embeddings").
// Where "rope_parameters" tells layer types apart, "full_attention" makes spec->rope and
// "sliding_attention" spec->window_rope. InvalidArgument names the key; Unsupported a kind that is
// not here, and partial rotation of a family whose spec has none.
Status ReadRope(const Value& config, double theta, ModelSpec* spec);

}  // namespace octavo
