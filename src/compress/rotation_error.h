// Whether a rotated model computes what it did.
#pragma once

#include "base/context.h"
#include "base/status.h"
#include "runtime/load.h"

namespace octavo {

// How far the rotated model is from the original: the largest difference of the logits of a few
// tokens, as a share of the largest logit. Both are left without their blocks and ends.
Result<double> RotationError(LoadedModel* original, LoadedModel* rotated, const Context& context);

}  // namespace octavo
