// What every quantizing modifier is told: targets, ignore, scheme or config_groups, observers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "quant/config.h"
#include "quant/strict_object.h"

namespace octavo {

// Settings that every modifier accepts: requires_calibration_data is what the class needs in any
// case, some belong to training, and some are of older releases and without effect.
std::vector<std::string> CommonModifierKeys();

// Warns of each setting of an older release that is there.
void WarnOfRetiredKeys(const StrictObject& settings, Logger& log);

// Keys of a quantizing modifier, to which the class adds its own.
std::vector<std::string> QuantizationKeys();

// True when `settings` says what to quantize: without it a GPTQModifier takes the schemes of an
// earlier modifier.
bool HasQuantizationFields(const Value& settings);

// The schemes that the settings declare, presets expanded, unnamed observers filled in.
// InvalidArgument when scheme and config_groups are both given, or neither and no kv_cache_scheme.
Result<QuantizationConfig> ParseQuantizationFields(const StrictObject& settings, Logger& log);

// Whether ranges of activations, or what the observers of weights are told of them, must be seen
// first.
bool RequiresCalibration(const QuantizationConfig& config);

// These fields as the library saves them, in its order, with nulls dropped.
Value SavedQuantizationFields(const Value& settings, bool requires_calibration_data);

}  // namespace octavo
