// The kernels of SiluMul: one row each call.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// y[j] = gate[j] / (1 + exp(-gate[j])) * up[j] for j < n.
using SiluMulRow = void(const float* gate, const float* up, int64_t n, float* y);
using SiluMulKernel = Kernel<SiluMulRow>;

#define OCTAVO_KERNEL(isa, function, exactness) SiluMulRow function;
#include "kernels/silu_mul/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const SiluMulKernel> SiluMulKernels();

}  // namespace octavo
