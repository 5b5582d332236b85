// Static inputs: the scale that a layer's input is quantized with at run time, found from
// calibration.
#pragma once

#include <functional>

#include "base/context.h"
#include "base/status.h"
#include "compress/block_work.h"
#include "compress/calibration.h"
#include "model/forward.h"
#include "quant/args.h"

namespace octavo {

// What must be known of the inputs of a layer with this scheme: nothing where its input is not
// static; the range of each channel where the extremes of all data count; the samples one by one
// for every other observer (StatisticsNeeds::input_samples).
StatisticsNeeds StaticInputNeeds(const QuantizationScheme& scheme);

// Runs the original block over the calibration tokens with this tap.
using ObservingPass = std::function<Status(const Tap& tap)>;

// After the modifiers: fills LayerWork::input of each layer whose input is static, from the range
// of the input as the modifiers left it (divided by what smoothing divided it by). Layers that
// share an input share its scale. `pass` is called only where some observer must see the samples
// one by one; `calibration` is what it runs over. Errors name the layer.
Status SetStaticInputs(BlockWork* work, const Calibration& calibration, const ObservingPass& pass);

}  // namespace octavo
