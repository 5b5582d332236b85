// The kernels of the INT8 matmul and the packed layout of weights they read.
//
// Weights are packed in tiles of neighbouring columns (rows of w), four values of k at a time (a
// *group*), because one VNNI lane multiplies four bytes:
//
//   packed weights [n / column_tile][k / 4][column_tile][4] bytes, byte = w + weight_offset
//
//   column tile 0                                                        column tile 1
//   | c0: k0 k1 k2 k3 | c1: k0..k3 | ... | c0: k4..k7 | c1: k4..k7 | ... | ...
//
// All divisions round up. Missing k and missing columns are zero bytes (so missing k adds nothing
// whatever it is multiplied with, missing columns are not stored); 8 bits a weight.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// Values of k that lie together.
inline constexpr int64_t kInt8Group = 4;

// Rows of a block at most.
inline constexpr int64_t kInt8BlockRows = 96;

// A block of the result: whole column tiles, and the epilogue's inputs for it.
struct Int8Block {
  const uint8_t* weights;      // packed, from the block's first column on
  const int8_t* rows;          // q [m, k]
  int64_t k;                   // values of a row, and bytes from row to row
  int64_t m;                   // rows of the block, at most kInt8BlockRows
  int64_t n;                   // columns of the block
  const int32_t* row_sums;     // [m], sum_k q[i, k]; null where weight_offset is 0
  const float* row_scales;     // [m]
  const int32_t* zero_points;  // [m] or null: all zero
  const int32_t* column_sums;  // [n], sum_k w[j, k]
  const float* weight_scales;  // [n]
  const float* bias;           // [n] or null
  float* y;                    // [m, n]
  int64_t ldy;

  int64_t groups() const { return (k + kInt8Group - 1) / kInt8Group; }
};

// y[i, j] = float(sum_k q[i, k] w[j, k] - zero_points[i] * column_sums[j]) * (row_scales[i] *
// weight_scales[j]) [+ bias[j]], the integers exact, each float operation rounded once, in that
// order.
using MultiplyInt8Block = void(const Int8Block& block);

// sum_l q[l] over l < k.
using SumInt8 = int32_t(const int8_t* q, int64_t k);

struct Int8MatmulKernel {
  Isa isa;
  const char* name;
  MultiplyInt8Block* run;
  SumInt8* sum;
  int64_t column_tile;
  uint8_t weight_offset;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, function, sum, column_tile, weight_offset, exactness) \
  MultiplyInt8Block function;                                                    \
  SumInt8 sum;
#include "kernels/matmul_int8/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const Int8MatmulKernel> Int8MatmulKernels();

}  // namespace octavo
