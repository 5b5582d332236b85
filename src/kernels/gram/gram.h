// The Hessian's building block: h += scale * x^T x.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// x [m, k] with ldx; h [k, k] row-major, both triangles updated and exactly symmetric. Upper tiles
// are computed (fixed tiles, one thread each) and mirrored. Results do not depend on the number of
// threads. Exactness class: bounded.
void AddGram(const float* x, int64_t ldx, int64_t m, int64_t k, float scale, std::span<float> h,
             Isa isa, ThreadPool& pool);

}  // namespace octavo
