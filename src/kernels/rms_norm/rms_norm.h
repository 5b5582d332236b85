// RMSNorm: y[i,j] = x[i,j] / sqrt(mean_j(x[i,j]^2) + epsilon) * weight[j]  (Zhang & Sennrich 2019).
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// x [m, k] with ldx, weight [k], y [m, k] with ldy; y may be x. Exactness class: bounded.
void RmsNorm(const float* x, int64_t ldx, int64_t m, std::span<const float> weight, float epsilon,
             float* y, int64_t ldy, Isa isa, ThreadPool& pool);

}  // namespace octavo
