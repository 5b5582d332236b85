// How much of a layer's output quantization loses on the calibration inputs.
#pragma once

#include "base/context.h"
#include "base/status.h"
#include "compress/block_work.h"
#include "octavo/quantize.h"

namespace octavo {

// ||X D^T||^2 over the tokens of a Hessian H = 2 X^T X: the sum over rows d of D [n, k] of d H d^T
// / 2.
double OutputEnergy(std::span<const float> d, int64_t n, int64_t k, std::span<const float> hessian,
                    const Context& context);

// Errors of a quantized layer and of rounding it to nearest, as shares of the output's (or, without
// a Hessian, the weight's) energy.
Result<LayerReport> MeasureLayer(const LayerWork& layer, const InputStatistics& statistics,
                                 const Context& context);

}  // namespace octavo
