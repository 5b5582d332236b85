// The kernels of RMSNorm: one row each call.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// y[j] = x[j] / sqrt(mean(x^2) + epsilon) * weight[j] for j < k; y may be x.
using RmsNormRow = void(const float* x, int64_t k, const float* weight, float epsilon, float* y);
using RmsNormKernel = Kernel<RmsNormRow>;

#define OCTAVO_KERNEL(isa, function, exactness) RmsNormRow function;
#include "kernels/rms_norm/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const RmsNormKernel> RmsNormKernels();

}  // namespace octavo
