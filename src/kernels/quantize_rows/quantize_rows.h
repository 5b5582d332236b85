// Dynamic per-token quantization of activations: each row of x gets its own scale.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// How a symmetric int8 scale follows from a row's largest magnitude a.
enum class ActivationRule : uint8_t {
  kEngine,   // vLLM, SGLang: s = a / 127, q = rne(x * (127 / a)): codes -127..127
  kLibrary,  // compressed-tensors' forward: s = a / 127.5, q = rne(clamp(x / s, -128, 127)): codes
             // -128..127
};

// x [m, k] with ldx -> codes [m, k] int8 row-major, scales [m].
// A row of zeros gets codes 0 and scale 0 (kEngine), or scale 2^-23 (kLibrary, its zero guard). A
// row with NaN or Inf gets codes 0 and scale NaN: the result is NaN, never a wrong number. A row so
// small that 127 / a overflows counts as zeros. Exactness class: exact (bit-equal on all ISAs).
void QuantizeRowsInt8(const float* x, int64_t ldx, int64_t m, int64_t k, ActivationRule rule,
                      int8_t* codes, float* scales, Isa isa, ThreadPool& pool);

}  // namespace octavo
