// Quantization of activations to int8: a scale of its own for each row, or one that is given.
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

// As compressed-tensors does it: lo = min(0, min x), hi = max(0, max x), s = (hi - lo) / 255,
// z = rne(clamp(-128 - lo / s, -128, 127)), q = rne(clamp(x / s + z, -128, 127)); x stands for
// s (q - z). x [m, k] with ldx -> codes [m, k], scales [m], zero_points [m] in [-128, 127].
// A row of zeros (or so small that s is zero) gets codes 0, zero point 0 and scale 2^-23; a row
// with NaN or Inf, or whose hi - lo overflows, codes 0, zero point 0 and scale NaN. Exactness
// class: exact.
void QuantizeRowsInt8Asymmetric(const float* x, int64_t ldx, int64_t m, int64_t k, int8_t* codes,
                                float* scales, int32_t* zero_points, Isa isa, ThreadPool& pool);

// The quantization of a static scheme: one scale and zero point for every activation.
struct StaticInt8 {
  float scale = 0;         // positive, finite
  int32_t zero_point = 0;  // in [-128, 127]; 0 where the scheme is symmetric
};

// q = rne(clamp(x / scale + zero_point, -128, 127)). x [m, k] with ldx -> codes [m, k], scales [m]:
// each the given one, but NaN for a row with NaN or Inf, whose codes are 0. Exactness class: exact.
void QuantizeRowsInt8Static(const float* x, int64_t ldx, int64_t m, int64_t k,
                            const StaticInt8& quantization, int8_t* codes, float* scales, Isa isa,
                            ThreadPool& pool);

}  // namespace octavo
