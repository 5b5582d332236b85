#include "kernels/gram/gram.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/matmul_float/matmul_float.h"

namespace octavo {

namespace {

// Columns of a tile: large enough for sgemm's full speed, small enough for many tasks.
constexpr int64_t kTile = 192;

struct TilePosition {
  int64_t row;
  int64_t column;
};

// The i-th tile of the upper triangle of `tiles` x `tiles`, row by row.
TilePosition UpperTile(int64_t i, int64_t tiles) {
  int64_t row = 0;
  for (int64_t width = tiles; i >= width; --width) {
    i -= width;
    ++row;
  }
  return {row, row + i};
}

}  // namespace

void AddGram(const float* x, int64_t ldx, int64_t m, int64_t k, float scale, std::span<float> h,
             Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(static_cast<int64_t>(h.size()) == k * k) << h.size() << " for k = " << k;
  if (m == 0) return;
  const int64_t tiles = (k + kTile - 1) / kTile;
  pool.ParallelFor(tiles * (tiles + 1) / 2, [&](int64_t task) {
    const TilePosition tile = UpperTile(task, tiles);
    const int64_t row = tile.row * kTile;
    const int64_t column = tile.column * kTile;
    const int64_t rows = std::min(kTile, k - row);
    const int64_t columns = std::min(kTile, k - column);
    float* upper = h.data() + row * k + column;
    SgemmTile(true, false, rows, columns, m, scale, x + row, ldx, x + column, ldx, 1.0F, upper, k,
              isa);
    // The lower triangle is a copy, in the tiles on the diagonal too: exactly symmetric.
    float* lower = h.data() + column * k + row;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t first = row == column ? i + 1 : 0;
      for (int64_t j = first; j < columns; ++j) lower[j * k + i] = upper[i * k + j];
    }
  });
}

}  // namespace octavo
