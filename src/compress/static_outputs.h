// Static outputs: the scale that a layer's output is quantized with at run time, found from
// calibration.
#pragma once

#include "base/context.h"
#include "base/status.h"
#include "compress/block_work.h"
#include "compress/calibration.h"
#include "compress/static_inputs.h"
#include "quant/args.h"
#include "runtime/load.h"

namespace octavo {

// What must be known for a layer with this scheme: nothing where its output is not static; else the
// samples of its input one by one, from which its outputs are computed.
StatisticsNeeds StaticOutputNeeds(const QuantizationScheme& scheme);

// After the weights are quantized: fills LayerWork::output of each layer whose output is static,
// from the range of what the quantized weights make of the calibration inputs, bias included.
// Layers that share an input have each their own. `source` has the biases. Errors name the layer.
Status SetStaticOutputs(BlockWork* work, const LoadedModel& source, const Calibration& calibration,
                        const ObservingPass& pass, const Context& context);

}  // namespace octavo
