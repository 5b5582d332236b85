// SmoothQuantModifier under its names: the classes of recipes that differ in the default algorithm.
#pragma once

#include <memory>
#include <string_view>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "compress/modifier.h"
#include "compress/modifiers/smooth_scales.h"

namespace octavo {

// A modifier that the recipe calls `class_name`, which outlives it; `algorithm` is that of settings
// that name none.
Result<std::unique_ptr<Modifier>> ParseSmoothQuant(std::string_view class_name,
                                                   SmoothAlgorithm algorithm, const Value& settings,
                                                   std::string_view where, Logger& log);

}  // namespace octavo
