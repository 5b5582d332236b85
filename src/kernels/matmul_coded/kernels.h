// The kernels of the matmul with coded weights.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"
#include "kernels/matmul_coded/matmul_coded.h"

namespace octavo {

// out[0, count) = w[row, begin ...], float32; begin is a multiple of kInputBlock, so that no code
// is cut and no group begins elsewhere.
using DecodeCoded = void(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count,
                         float* out);

// Inputs are arranged in blocks of 128, the last one filled with zeros, as the kernel makes its
// weights. Where a lane of 16 holds c neighbours (8 nibbles, or 4 bytes, of a 32-bit word), element
// c d + i of 16 c (code i of word d) lies at 16 i + d: one shift of sixteen words yields the codes
// of sixteen lanes. With c = 1 elements are in order.
inline constexpr int64_t kInputBlock = 128;

struct CodedInput {
  const float* x = nullptr;  // [m, k], as it came
  int64_t ldx = 0;
  int64_t m = 0;
  const float* arranged = nullptr;  // [blocks, m, kInputBlock], 64-byte aligned
  int64_t blocks = 0;
  // [blocks, m, 16]: of each eight neighbours of a block the sum; null where the weights
  // have no zero points.
  const float* word_sums = nullptr;
};

// y[i, j] = sum over k of x[i, k] w[first + j, k] for i < m, j < rows.
using DotCoded = void(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                      float* y, int64_t ldy);

struct CodedKernel {
  Isa isa;
  CodeFormat format;
  const char* name;
  DecodeCoded* decode;
  DotCoded* dot;
  int64_t lane_columns;  // c of CodedInput: 1, 4 or 8
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, format, decode, dot, lane_columns, exactness) \
  DecodeCoded decode;                                                    \
  DotCoded dot;
#include "kernels/matmul_coded/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const CodedKernel> CodedKernels();

// The best kernel for codes of `format` that `isa` allows.
const CodedKernel& BestCodedKernel(CodeFormat format, Isa isa);

// Row-major element of the scales, times the multiplier.
float ScaleAt(const CodedMatrix& w, int64_t unit);

}  // namespace octavo
