// The flow that makes a quantized checkpoint.
#pragma once

#include "base/context.h"
#include "base/status.h"
#include "compress/recipe.h"
#include "octavo/quantize.h"

namespace octavo {

// Quantizes `model` by the recipe into `out`, block by block: memory holds one block and, where
// there is room, the calibration tokens' hidden states. Nothing exists under `out` before the
// result was reopened and checked. A run that was killed, cancelled or stopped by a full disk
// leaves "<out>.unfinished"; the same call goes on after the last block that was done, and ends
// with the same bytes. A call that asks for something else is refused, unless `restart` is set.
Result<QuantizationReport> Quantize(const QuantizeOptions& options, const Recipe& recipe,
                                    const Context& context);

}  // namespace octavo
