// The kernels of the dense matmul for few rows: dot products over rows as they are stored.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"
#include "tensor/dtype.h"

namespace octavo {

// y[i, j] = sum_k x[i, k] w[j, k] for i < m, j < n, l < k; w [n, k] contiguous in the kernel's
// dtype, of any alignment.
using DotRows = void(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                     float* y, int64_t ldy);

struct FloatMatmulKernel {
  Isa isa;
  DType dtype;
  const char* name;
  DotRows* dot_rows;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, dtype, dot, exactness) DotRows dot;
#include "kernels/matmul_float/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const FloatMatmulKernel> FloatMatmulKernels();

// The best kernel for weights of `dtype` that `isa` allows.
const FloatMatmulKernel& BestFloatMatmulKernel(DType dtype, Isa isa);

}  // namespace octavo
