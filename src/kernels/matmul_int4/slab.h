// How the vector kernels go through a block: a column tile at a time, a part of k at a time,
// unpacked to bytes for all rows of the block.
#pragma once

#include "kernels/matmul_int4/kernels.h"

// In an anonymous namespace on purpose: see x86_avx512_math.h.
namespace octavo {
namespace {  // NOLINT(google-build-namespaces)

// Values of k that a lane multiplies at a time.
constexpr int64_t kInt4Group = 4;

// A part of the column tile that starts at column j.
struct Slab {
  const uint8_t* weights;  // unpacked: a byte for each, [group][column of the tile][kInt4Group]
  Int4Part part;
  int64_t index;      // of the part
  int64_t num_parts;  // of a row
  int64_t j;
  bool last;            // sums are complete
  const int32_t* rest;  // [m]: the values of k behind whole groups, or null
  float* sums;          // [m, column tile]: of the parts before, scaled
};

// Calls multiply(i, rows, slab) for each row tile of each slab. unpack(packed, steps, bytes)
// unpacks steps of a column tile.
template <int64_t ColumnTile, int64_t RowTile, typename Unpack, typename Multiply>
inline void ForEachSlab(const Int4Block& block, const Unpack& unpack, const Multiply& multiply) {
  alignas(64) uint8_t bytes[kInt4Part * ColumnTile];
  alignas(64) float sums[kInt4BlockRows * ColumnTile];
  int32_t rest[kInt4BlockRows] = {};
  const int64_t k = block.parts.k;
  const int64_t num_rest = k % kInt4Group;
  for (int64_t i = 0; i < block.m; ++i) {
    __builtin_memcpy(rest + i, block.rows + (i + 1) * k - num_rest, static_cast<size_t>(num_rest));
  }
  const int64_t num_parts = block.parts.count();
  for (int64_t j = 0; j < block.n; j += ColumnTile) {
    const uint8_t* packed = block.weights + j * block.steps() * kInt4Step / 2;
    for (int64_t p = 0; p < num_parts; ++p) {
      const Int4Part part = block.parts.At(p);
      const int64_t steps = (part.end - part.begin + kInt4Step - 1) / kInt4Step;
      unpack(packed + part.begin / 2 * ColumnTile, steps, bytes);
      const Slab slab{.weights = bytes,
                      .part = part,
                      .index = p,
                      .num_parts = num_parts,
                      .j = j,
                      .last = p + 1 == num_parts,
                      .rest = part.end == k && num_rest != 0 ? rest : nullptr,
                      .sums = sums};
      for (int64_t i = 0; i < block.m; i += RowTile)
        multiply(i, block.m - i < RowTile ? block.m - i : RowTile, slab);
    }
  }
}

}  // namespace
}  // namespace octavo
