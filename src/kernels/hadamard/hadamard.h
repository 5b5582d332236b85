// Rows times Sylvester's Hadamard matrix, by blocks: the fast Walsh-Hadamard transform.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// The block M = scale * diag(before) H diag(after) of n x n elements; H[i][j] = (-1)^(bits that i
// and j share), symmetric, natural order. n is a power of two.
struct HadamardBlock {
  int64_t n = 1;
  const float* before = nullptr;  // [n], 1 or -1; null: all 1
  const float* after = nullptr;   // likewise
  float scale = 1;
};

// y [m, k] = x [m, k] diag(M, M, ...), k / n blocks; rows lie ldx and ldy floats apart. y may be x.
// n log2 n additions a block, in the same order by every kernel: exactness class ordered.
void ApplyHadamard(const HadamardBlock& block, const float* x, int64_t ldx, int64_t m, int64_t k,
                   float* y, int64_t ldy, Isa isa, ThreadPool& pool);

}  // namespace octavo
