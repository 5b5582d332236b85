// The kernels of the INT8 matmul and the packed layout they read.
//
// Both operands are packed in tiles of neighbouring columns (rows of w) or rows (of q), four values
// of k at a time (a *group*), because one VNNI lane multiplies four bytes:
//
//   packed weights [n / column_tile][k / 4][column_tile][4] bytes, byte = w + weight_offset
//   packed rows    [m / row_tile]   [k / 4][row_tile]   [4] bytes, byte = q
//
//   column tile 0                                                        column tile 1
//   | c0: k0 k1 k2 k3 | c1: k0..k3 | ... | c0: k4..k7 | c1: k4..k7 | ... | ...
//
// All divisions round up. Missing k and missing columns are zero bytes (missing k meets zeros of q,
// missing columns are not stored); 8 bits a weight. The last row tile is as narrow as the rows that
// are left, so row i starts a tile at byte i * groups * 4.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// Values of k that lie together.
inline constexpr int64_t kInt8Group = 4;

// A block of the result: whole tiles of both operands, and the epilogue's inputs for it.
struct Int8Block {
  const uint8_t* weights;      // packed, from the block's first column on
  const int8_t* rows;          // packed, from the block's first row on
  int64_t groups;              // ceil(k / 4)
  int64_t m;                   // rows of the block
  int64_t n;                   // columns of the block
  const int32_t* row_sums;     // [m], sum_k q[i, k]
  const float* row_scales;     // [m]
  const int32_t* zero_points;  // [m] or null: all zero
  const int32_t* column_sums;  // [n], sum_k w[j, k]
  const float* weight_scales;  // [n]
  const float* bias;           // [n] or null
  float* y;                    // [m, n]
  int64_t ldy;
};

// y[i, j] = float(sum_k q[i, k] w[j, k] - zero_points[i] * column_sums[j]) * (row_scales[i] *
// weight_scales[j]) [+ bias[j]], the integers exact, each float operation rounded once, in that
// order.
using MultiplyInt8Block = void(const Int8Block& block);

struct Int8MatmulKernel {
  Isa isa;
  const char* name;
  MultiplyInt8Block* run;
  int64_t row_tile;
  int64_t column_tile;
  uint8_t weight_offset;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, function, row_tile, column_tile, weight_offset, exactness) \
  MultiplyInt8Block function;
#include "kernels/matmul_int8/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const Int8MatmulKernel> Int8MatmulKernels();

}  // namespace octavo
