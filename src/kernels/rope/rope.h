// Rotary position embedding: pairs of a head's values turned by the angle of position and pair.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// Which values of a head, of r = rotary_dim, make pair i.
enum class RopePairs : uint8_t {
  kHalves,      // i and i + r / 2, as most of Hugging Face's models store it
  kNeighbours,  // 2i and 2i + 1
};

// x [m, heads, head_dim] with ldx floats from row to row, turned in place. cos and sin: [m,
// rotary_dim / 2], one row for each row of x. For i < rotary_dim / 2, with (a, b) pair i: a' = a
// cos_i - b sin_i and b' = b cos_i + a sin_i; elements from rotary_dim on stay. Exactness class:
// ordered (each product rounded, then the sum: equal on all ISAs).
void ApplyRope(float* x, int64_t ldx, int64_t m, int64_t heads, int64_t head_dim,
               int64_t rotary_dim, RopePairs pairs, const float* cos, const float* sin, Isa isa,
               ThreadPool& pool);

}  // namespace octavo
