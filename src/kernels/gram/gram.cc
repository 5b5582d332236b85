#include "kernels/gram/gram.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/matmul_float/matmul_float.h"
#include "kernels/matmul_float/panels.h"
#include "kernels/scratch.h"

namespace octavo {

namespace {

// Columns of a tile: four panels, and large enough for sgemm's full speed.
constexpr int64_t kTile = 4 * kPanelColumns;
// Rows of x that are packed at a time: a panel of them stays in L2.
constexpr int64_t kRows = 1024;

int64_t Tiles(int64_t size, int64_t tile) {
  return (size + tile - 1) / tile;
}

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

// Columns [first, first + kPanelColumns) of x, those that do not exist zero.
void PackColumns(const float* x, int64_t ldx, int64_t m, int64_t k, int64_t first, float* panel) {
  const int64_t columns = std::min(kPanelColumns, k - first);
  for (int64_t row = 0; row < m; ++row, panel += kPanelColumns) {
    std::copy_n(x + row * ldx + first, columns, panel);
    std::fill(panel + columns, panel + kPanelColumns, 0.0F);
  }
}

// At most kRows rows.
void AddPanels(const float* x, int64_t ldx, int64_t m, int64_t k, float scale, float* h,
               const PanelKernel& kernel, ThreadPool& pool) {
  const int64_t panels = Tiles(k, kPanelColumns);
  const int64_t panel_size = m * kPanelColumns;
  float* packed = ThreadScratch(panels * panel_size);
  pool.ParallelFor(panels, [&](int64_t panel) {
    PackColumns(x, ldx, m, k, panel * kPanelColumns, packed + panel * panel_size);
  });
  const auto columns_of = [k](int64_t panel) {
    return std::min(kPanelColumns, k - panel * kPanelColumns);
  };
  constexpr int64_t kTilePanels = kTile / kPanelColumns;
  const int64_t tiles = Tiles(panels, kTilePanels);
  pool.ParallelFor(tiles * (tiles + 1) / 2, [&](int64_t task) {
    const TilePosition tile = UpperTile(task, tiles);
    const int64_t row_end = std::min((tile.row + 1) * kTilePanels, panels);
    const int64_t column_end = std::min((tile.column + 1) * kTilePanels, panels);
    for (int64_t j = tile.column * kTilePanels; j < column_end; ++j) {
      for (int64_t i = tile.row * kTilePanels; i < std::min(row_end, j + 1); ++i) {
        const PanelRows rows{
            .data = packed + i * panel_size, .row_stride = 1, .step_stride = kPanelColumns};
        kernel.multiply(rows, columns_of(i), packed + j * panel_size, m,
                        {.c = h + i * kPanelColumns * k + j * kPanelColumns,
                         .ldc = k,
                         .columns = columns_of(j),
                         .add = true,
                         .scale = scale});
      }
    }
  });
}

void AddSgemm(const float* x, int64_t ldx, int64_t m, int64_t k, float scale, float* h, Isa isa,
              ThreadPool& pool) {
  const int64_t tiles = Tiles(k, kTile);
  pool.ParallelFor(tiles * (tiles + 1) / 2, [&](int64_t task) {
    const TilePosition tile = UpperTile(task, tiles);
    const int64_t row = tile.row * kTile;
    const int64_t column = tile.column * kTile;
    SgemmTile(true, false, std::min(kTile, k - row), std::min(kTile, k - column), m, scale, x + row,
              ldx, x + column, ldx, 1.0F, h + row * k + column, k, isa);
  });
}

}  // namespace

void AddGram(const float* x, int64_t ldx, int64_t m, int64_t k, float scale, std::span<float> h,
             Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(static_cast<int64_t>(h.size()) == k * k) << h.size() << " for k = " << k;
  const PanelKernel* kernel = FindPanelKernel(DType::kF32, isa);
  for (int64_t first = 0; first < m; first += kRows) {
    const int64_t rows = std::min(kRows, m - first);
    if (kernel != nullptr) {
      AddPanels(x + first * ldx, ldx, rows, k, scale, h.data(), *kernel, pool);
    } else {
      AddSgemm(x + first * ldx, ldx, rows, k, scale, h.data(), isa, pool);
    }
  }
}

void MirrorUpper(int64_t k, std::span<float> h, ThreadPool& pool) {
  OCTAVO_CHECK(static_cast<int64_t>(h.size()) == k * k) << h.size() << " for k = " << k;
  const int64_t tiles = Tiles(k, kPanelColumns);
  pool.ParallelFor(tiles * (tiles + 1) / 2, [&](int64_t task) {
    const TilePosition tile = UpperTile(task, tiles);
    const int64_t row = tile.row * kPanelColumns;
    const int64_t column = tile.column * kPanelColumns;
    const int64_t row_end = std::min(row + kPanelColumns, k);
    for (int64_t j = column; j < std::min(column + kPanelColumns, k); ++j) {
      for (int64_t i = row; i < std::min(row_end, j); ++i) {
        h[static_cast<size_t>(j * k + i)] = h[static_cast<size_t>(i * k + j)];
      }
    }
  });
}

}  // namespace octavo
