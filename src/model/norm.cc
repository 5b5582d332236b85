#include "model/norm.h"

#include <fmt/format.h>

#include "kernels/rms_norm/rms_norm.h"
#include "tensor/convert.h"

namespace octavo {

Result<Tensor> ReadNormWeight(const ModelSpec& spec, const TensorView& stored, int64_t size) {
  if (stored.shape != Shape{size}) {
    return InvalidArgument(fmt::format("shape {}, expected [{}]", ShapeString(stored.shape), size));
  }
  OCTAVO_ASSIGN_OR_RETURN(Tensor weight, ToFloatTensor(stored));
  if (spec.norm_adds_one) {
    for (float& value : weight.mutable_data<float>()) value += 1;
  }
  return weight;
}

void ApplyNorm(const ModelSpec& spec, const Tensor& weight, const float* x, int64_t ldx, int64_t m,
               float* y, int64_t ldy, const Context& context) {
  RmsNorm(x, ldx, m, weight.data<float>(), spec.norm_epsilon, y, ldy, context.isa, context.pool);
}

}  // namespace octavo
