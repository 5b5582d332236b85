// SwiGLU's middle: y = silu(gate) * up, silu(x) = x / (1 + exp(-x)).
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// gate_up [m, 2n] with ld floats from row to row: gate in the first n columns, up in the next n. y
// [m, n] with ldy. Exactness class: bounded (exp within 2 ulp; no overflow for any finite input).
void SiluMul(const float* gate_up, int64_t ld, int64_t m, int64_t n, float* y, int64_t ldy, Isa isa,
             ThreadPool& pool);

}  // namespace octavo
