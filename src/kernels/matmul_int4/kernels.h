// The kernels of the INT4 matmul and the packed layout of weights they read.
//
// As the INT8 kernels' (matmul_int8/kernels.h), at half the size: a column tile has eight values of
// k at a time, a *step*, the first four in the low nibbles of four bytes, the others in the high
// ones:
//
//   packed weights [n / column_tile][k / 8][column_tile][4] bytes, nibble = w + 8
//
//   column tile 0
//   | c0: k0,k4 k1,k5 k2,k6 k3,k7 | c1: .. | ... | c0: k8,k12 ..
//
// All divisions round up; missing k and missing columns are zero bytes; 4 bits a weight.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

inline constexpr int64_t kInt4Step = 8;

// Columns that are summed in integers before the sum is scaled, at most: unpacked, a tile's weights
// of such a part stay in L1.
inline constexpr int64_t kInt4Part = 256;

// Rows of a block at most.
inline constexpr int64_t kInt4BlockRows = 96;

// Columns [begin, end) of w that belong to one group.
struct Int4Part {
  int64_t begin;
  int64_t end;
  int64_t group;
};

// How rows are cut: groups of `group` columns (the last may be shorter), those in parts.
struct Int4Parts {
  int64_t k;
  int64_t group;

  // Defined in matmul_int4.cc: an inline function of a header may be kept as it was compiled for
  // one instruction set.
  int64_t per_group() const;
  int64_t count() const;
  Int4Part At(int64_t part) const;
};

// A block of the result: whole column tiles.
struct Int4Block {
  const uint8_t* weights;  // packed, from the block's first column on
  const int8_t* rows;      // q [m, k]
  Int4Parts parts;
  int64_t m;                // at most kInt4BlockRows
  int64_t n;                // columns of the block
  const int32_t* row_sums;  // [m, parts]: of q over each part
  const float* row_scales;  // [m], or [m, groups]
  int64_t row_scales_stride;
  bool scales_of_groups;
  const float* weight_scales;  // [groups, n of the matrix], from the block's first column on
  const int32_t* offsets;      // likewise; null: all 8
  int64_t scales_stride;
  const float* bias;  // [n] or null
  float* y;           // [m, n]
  int64_t ldy;

  int64_t steps() const { return (parts.k + kInt4Step - 1) / kInt4Step; }
};

// y as MultiplyInt4 says.
using MultiplyInt4Block = void(const Int4Block& block);

struct Int4MatmulKernel {
  Isa isa;
  const char* name;
  MultiplyInt4Block* run;
  int64_t column_tile;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, function, column_tile, exactness) MultiplyInt4Block function;
#include "kernels/matmul_int4/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const Int4MatmulKernel> Int4MatmulKernels();

}  // namespace octavo
