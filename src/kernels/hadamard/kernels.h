// The kernels of ApplyHadamard: one block of a row each call.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// x [n] times H in place, n a power of two: for h = 1, 2, 4 ... below n, each pair (a, b) whose
// places differ in bit h alone becomes (a + b, a - b).
using HadamardInPlace = void(float* x, int64_t n);
using HadamardKernel = Kernel<HadamardInPlace>;

#define OCTAVO_KERNEL(isa, function, exactness) HadamardInPlace function;
#include "kernels/hadamard/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const HadamardKernel> HadamardKernels();

}  // namespace octavo
