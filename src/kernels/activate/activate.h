// The middle of a gated MLP: y = f(gate) * up.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

enum class Activation : uint8_t {
  kSilu,      // x / (1 + exp(-x))
  kGelu,      // x / 2 (1 + erf(x / sqrt(2)))
  kGeluTanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  kRelu,      // max(x, 0)
};

// gate_up [m, 2n] with ld floats from row to row: gate in the first n columns, up in the next n. y
// [m, n] with ldy. SiLU has kernels of its own (silu_mul), the others run in portable code.
// Exactness class: bounded.
void ActivateAndMultiply(Activation activation, const float* gate_up, int64_t ld, int64_t m,
                         int64_t n, float* y, int64_t ldy, Isa isa, ThreadPool& pool);

}  // namespace octavo
