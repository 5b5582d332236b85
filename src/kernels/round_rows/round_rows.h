// Activations as they read back after quantization: each value is rounded to the code of a small
// format, and multiplied by its scale again.
#pragma once

#include <cstdint>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

// What a value divided by its scale is rounded to, saturating; ties to the even code.
enum class RoundTo : uint8_t {
  kInt,   // -2^(bits - 1) .. 2^(bits - 1) - 1
  kE4M3,  // -448 .. 448
  kE2M1,  // -6 .. 6
};

// Where the scale s of a group comes from; a is its largest magnitude, `top` the largest code.
enum class RowScale : uint8_t {
  kFixed,         // scale
  kLargest,       // a / top
  kHalfSpan,      // kInt: a / (2^bits - 1) * 2, the library's rule
  kRange,         // kInt: (hi - lo) / (2^bits - 1) with a zero point, lo and hi include 0
  kPowerOfTwo,    // E8M0: 2^floor(log2 a'), less 8 (kE4M3) or 2 (kE2M1) binades; a' is a, or the
                  // next power of two from 1.75 times its own on
  kE4M3OfGlobal,  // e4m3(global * (a / 6)), an exact zero 1/8; the values' scale is s / global
};

struct RowRounding {
  RoundTo to = RoundTo::kE4M3;
  int bits = 8;  // kInt: 2 .. 8
  RowScale scale_from = RowScale::kLargest;
  int64_t group = 0;       // columns that share a scale, the last group may be shorter; 0: all
  float scale = 0;         // kFixed
  int32_t zero_point = 0;  // kFixed with kInt
  float global = 1;        // kE4M3OfGlobal

  int64_t groups(int64_t k) const { return group == 0 ? 1 : (k + group - 1) / group; }
};

// x [m, k] with ldx -> values [m, k] row-major, scales [m, groups] as s above (kFixed: the given
// one). A group of zeros gets zeros. A group with NaN or Inf gets the scale and values NaN.
// Exactness class: exact (bit-equal on all ISAs).
void RoundRows(const float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
               float* values, float* scales, Isa isa, ThreadPool& pool);

// The same over x itself, ldx floats from row to row.
void RoundRowsInPlace(float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
                      Isa isa, ThreadPool& pool);

// The same as codes [m, k], for kInt without zero points (kLargest, kHalfSpan, kFixed with zero
// point 0). Where values would be NaN, codes are 0 and the scale is NaN. Exactness class: exact.
void RoundRowsToInt8(const float* x, int64_t ldx, int64_t m, int64_t k, const RowRounding& rounding,
                     int8_t* codes, float* scales, Isa isa, ThreadPool& pool);

}  // namespace octavo
