// Rotary position embedding, split halves as Hugging Face stores it: (x_i, x_{i+d/2}) turned by the
// angle of position and i.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// x [m, heads, head_dim] with ldx floats from row to row, turned in place. cos and sin: [m,
// rotary_dim / 2], one row for each row of x. For i < rotary_dim / 2: x_i' = x_i cos_i - x_{i+r/2}
// sin_i and x_{i+r/2}' = x_{i+r/2} cos_i + x_i sin_i; elements from rotary_dim on stay. Exactness
// class: ordered (each product rounded, then the sum: equal on all ISAs).
void ApplyRope(float* x, int64_t ldx, int64_t m, int64_t heads, int64_t head_dim,
               int64_t rotary_dim, const float* cos, const float* sin, Isa isa, ThreadPool& pool);

}  // namespace octavo
