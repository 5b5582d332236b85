// Matmul with weights that stay as small codes: y[i,j] = sum_k x[i,k] * w[j,k] + bias[j], float32
// activations and sums, w[j,k] = (value of the code - zero point) * scale.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace octavo {

enum class CodeFormat : uint8_t {
  kNibble,  // two in a byte, the first in the low half; the value is table[code]
  kInt8,    // a signed byte
  kE4M3,    // a byte, no NaN
};

enum class ScaleFormat : uint8_t { kF32, kBf16, kE4M3, kE8M0 };

// Codes as a file has them, not owned. Rows begin at whole bytes. A unit of unit_rows x
// unit_columns elements shares a scale (the last ones may be smaller): element (j, k) has that of
// row j / unit_rows, column k / unit_columns of [ceil(n / unit_rows), scale_columns].
struct CodedMatrix {
  CodeFormat format = CodeFormat::kInt8;
  int64_t n = 0;
  int64_t k = 0;
  const uint8_t* codes = nullptr;
  int64_t row_bytes = 0;
  std::array<float, 16> table = {};  // kNibble: what each code stands for

  ScaleFormat scale_format = ScaleFormat::kF32;
  const void* scales = nullptr;  // of any alignment
  int64_t scale_columns = 1;
  int64_t unit_rows = 1;
  int64_t unit_columns = 1;  // multiples of 16, or k and more, are fast
  float multiplier = 1;      // of every scale

  const int8_t* zero_points = nullptr;  // one a scale; null: all zero
};

// x [m, k] with ldx floats from row to row; bias [n] or empty; y [m, n] with ldy. Few rows: dot
// products over the codes. Many rows: panels of 48 rows of w are decoded in cache. Results do not
// depend on the number of threads. Exactness class: bounded (|error| <= about 2 k eps sum|x w|).
void MultiplyCoded(const CodedMatrix& w, std::span<const float> bias, const float* x, int64_t ldx,
                   int64_t m, float* y, int64_t ldy, Isa isa, ThreadPool& pool);

// out [k] = row `row` of w, float32. Exactness class: exact.
void DecodeRow(const CodedMatrix& w, int64_t row, float* out, Isa isa);

}  // namespace octavo
