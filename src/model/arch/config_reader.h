// What the config.json of every family has in common, in both spellings (transformers 4 and 5).
#pragma once

#include "base/status.h"
#include "base/value.h"
#include "model/spec.h"

namespace octavo {

// Sizes, norm epsilon, rope base, tying and dtype. Sizes are checked: positive, bounded, and
// consistent with each other. InvalidArgument names the key; Unsupported a rope type or activation
// that is not there yet.
Result<ModelSpec> ReadCommonConfig(const Value& config);

}  // namespace octavo
