// A linear layer with the transforms around it that a checkpoint asks for while the model runs.
#pragma once

#include <memory>
#include <span>

#include "quant/scheme.h"

namespace octavo {

// Whether two layers have the same transforms, so that they can run as one.
bool SameTransforms(const LinearLayer& a, const LinearLayer& b);

// `linear` computes `layers` stacked; so does what is returned, with their transforms, which they
// share: y = (x T_in W^T + b) T_out. `linear` itself where there are none.
std::unique_ptr<PreparedLinear> WithTransforms(std::unique_ptr<PreparedLinear> linear,
                                               std::span<const LinearLayer> layers);

}  // namespace octavo
