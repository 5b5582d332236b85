// Whether a rotated model computes what it did.
#pragma once

#include <filesystem>

#include "base/context.h"
#include "base/status.h"
#include "runtime/load.h"

namespace octavo {

// How far the rotated model is from the original: the largest difference of the logits of a few
// tokens, as a share of the largest logit. Both are left without their blocks and ends.
Result<double> RotationError(LoadedModel* original, LoadedModel* rotated, const Context& context);

// A rotation that does not leave the model what it was is a mistake of the recipe's
// transform_config or mappings, better noticed before the work than in the output. `options` are
// those that `rotated` was loaded with, from `folder`. InvalidArgument names the error.
Status CheckRotation(const std::filesystem::path& folder, const LoadOptions& options,
                     LoadedModel* rotated, const Context& context);

}  // namespace octavo
