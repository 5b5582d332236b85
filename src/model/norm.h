// The norms of a model: their weights, and how they are applied.
#pragma once

#include <cstdint>
#include <string>

#include "base/context.h"
#include "base/status.h"
#include "model/spec.h"
#include "tensor/tensor.h"

namespace octavo {

// One norm of a graph.
struct Norm {
  std::string name;  // of the module; empty: the model has none here
  int64_t size = 0;
  Tensor weight;  // F32 [size], what values are multiplied by; filled by loading

  bool exists() const { return !name.empty(); }
};

// What values are multiplied by, F32, from the weight as it is stored (less one in some families).
// InvalidArgument where the shape is not [size].
Result<Tensor> ReadNormWeight(const ModelSpec& spec, const TensorView& stored, int64_t size);

// y [m, size] = norm(x [m, size]), ldx and ldy floats from row to row; y may be x.
void ApplyNorm(const ModelSpec& spec, const Tensor& weight, const float* x, int64_t ldx, int64_t m,
               float* y, int64_t ldy, const Context& context);

}  // namespace octavo
