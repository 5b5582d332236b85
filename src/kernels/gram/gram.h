// The Hessian's building block: h += scale * x^T x.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// x [m, k] with ldx; h [k, k] row-major, of which the upper triangle is updated; below the diagonal
// h may hold anything afterwards. Fixed tiles, one thread each: results do not depend on the number
// of threads. Exactness class: bounded.
void AddGram(const float* x, int64_t ldx, int64_t m, int64_t k, float scale, std::span<float> h,
             Isa isa, ThreadPool& pool);

// Copies the upper triangle of h [k, k] to the lower one: exactly symmetric.
void MirrorUpper(int64_t k, std::span<float> h, ThreadPool& pool);

}  // namespace octavo
