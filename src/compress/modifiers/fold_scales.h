// Moving the scale of input channels: the columns of a group's weights are multiplied, what makes
// the input is divided, and the model computes what it did.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "compress/block_work.h"

namespace octavo {

// Whether scales can move into the layer: not through a rotation of its input at run time.
inline bool ScalesFold(const LinearLayer& layer) {
  return layer.input_transforms.empty();
}

// Divides the group's norm by scales [k] and multiplies the columns of its layers. A norm's weight
// is rounded when it is stored: what it is then really divided by is what the columns are
// multiplied by. InvalidArgument when a divided weight does not fit the norm's dtype.
Status FoldIntoNorm(std::vector<float> scales, GroupWork* group);

// Divides the last k rows of `source` (all of them but where it is fused with others) by scales
// [k], and multiplies the columns of the group's layers.
void FoldIntoRows(std::span<const float> scales, LayerWork* source, GroupWork* group);

}  // namespace octavo
