// The kernels of rotary position embedding: one head of one row each call.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// For i < half: (x[i], x[i + half]) = (x[i] cos[i] - x[i + half] sin[i], x[i + half] cos[i] + x[i]
// sin[i]), each product rounded before the sum.
using RopeHead = void(float* x, int64_t half, const float* cos, const float* sin);
using RopeKernel = Kernel<RopeHead>;

#define OCTAVO_KERNEL(isa, function, exactness) RopeHead function;
#include "kernels/rope/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const RopeKernel> RopeKernels();

}  // namespace octavo
