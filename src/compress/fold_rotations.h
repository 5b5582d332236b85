// Folding rotations into one weight: what it is multiplied by, in float64, rounded once at the end.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/rotation.h"
#include "tensor/tensor.h"

namespace octavo {

// x <- M^T x, or M x, for each piece of a vector as long as M is large.
struct RotationStep {
  std::shared_ptr<const Rotation> rotation;
  bool transpose = false;
};

// What happens to a weight [n, k].
struct WeightRotation {
  std::vector<RotationStep> rows;     // to each row, of length k, in this order
  std::vector<RotationStep> columns;  // to each column, and so to the bias

  bool empty() const { return rows.empty() && columns.empty(); }
};

// The weight [n, k], of any float dtype, with its columns multiplied by gains [k] (empty: all 1),
// then rotated, as `dtype`. The sizes of rotations divide k and n.
Result<Tensor> RotateWeight(const TensorView& weight, std::span<const float> gains,
                            const WeightRotation& rotation, DType dtype, const Context& context);

// The bias [n], rotated as the weight's columns are, in its own dtype.
Result<Tensor> RotateBias(const TensorView& bias, const std::vector<RotationStep>& columns);

}  // namespace octavo
