#include "compress/modifiers/cholesky.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/matmul_float/matmul_float.h"

namespace octavo {

namespace {

// Rows of a panel. Below it plain loops do k * kPanel^2 operations, above it sgemm the rest.
constexpr int64_t kPanel = 64;
// Rows and columns of a tile of the trailing update.
constexpr int64_t kTile = 192;

using PanelSquare = std::array<float, kPanel * kPanel>;

// The [rows, rows] block at `a`, in place. False for a pivot that is not positive.
bool FactorBlock(float* a, int64_t lda, int64_t rows) {
  for (int64_t j = 0; j < rows; ++j) {
    float* row_j = a + j * lda;
    for (int64_t i = j; i < rows; ++i) {
      float* row_i = a + i * lda;
      float sum = row_i[j];
      for (int64_t p = 0; p < j; ++p) sum -= row_i[p] * row_j[p];
      if (i > j) {
        row_i[j] = sum / row_j[j];
      } else {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        row_i[j] = std::sqrt(sum);
      }
    }
  }
  return true;
}

// The inverse of the lower triangular block at `a`, dense [rows, kPanel] with zeros above.
void InvertBlock(const float* a, int64_t lda, int64_t rows, PanelSquare* inverse) {
  inverse->fill(0);
  float* x = inverse->data();
  for (int64_t i = 0; i < rows; ++i) {
    const float pivot = a[i * lda + i];
    for (int64_t p = 0; p < i; ++p) {
      const float factor = a[i * lda + p] / pivot;
      for (int64_t j = 0; j <= p; ++j) x[i * kPanel + j] -= factor * x[p * kPanel + j];
    }
    x[i * kPanel + i] = 1 / pivot;
  }
}

int64_t Tiles(int64_t size, int64_t tile) {
  return (size + tile - 1) / tile;
}

}  // namespace

bool CholeskyInPlace(std::span<float> a, int64_t k, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(static_cast<int64_t>(a.size()) == k * k) << a.size() << " for k = " << k;
  std::vector<float> solved(static_cast<size_t>(k * kPanel));
  for (int64_t begin = 0; begin < k; begin += kPanel) {
    const int64_t rows = std::min(kPanel, k - begin);
    const int64_t end = begin + rows;
    float* corner = a.data() + begin * k + begin;
    if (!FactorBlock(corner, k, rows)) return false;
    PanelSquare inverse;
    InvertBlock(corner, k, rows, &inverse);

    // Below the corner: A21 <- A21 L11^-T, through `solved` as sgemm may not overlap.
    const int64_t rest = k - end;
    const int64_t tiles = Tiles(rest, kTile);
    float* below = a.data() + end * k + begin;
    pool.ParallelFor(tiles, [&](int64_t tile) {
      const int64_t first = tile * kTile;
      const int64_t count = std::min(kTile, rest - first);
      float* out = solved.data() + first * kPanel;
      SgemmTile(false, true, count, rows, rows, 1.0F, below + first * k, k, inverse.data(), kPanel,
                0.0F, out, kPanel, isa);
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(out + i * kPanel, rows, below + (first + i) * k);
      }
    });

    // The rest: A22 <- A22 - A21 A21^T, tiles on and below the diagonal.
    pool.ParallelFor(tiles * tiles, [&](int64_t task) {
      const int64_t row = task / tiles * kTile;
      const int64_t column = task % tiles * kTile;
      if (column > row) return;
      SgemmTile(false, true, std::min(kTile, rest - row), std::min(kTile, rest - column), rows,
                -1.0F, solved.data() + row * kPanel, kPanel, solved.data() + column * kPanel,
                kPanel, 1.0F, a.data() + (end + row) * k + end + column, k, isa);
    });
  }
  return true;
}

void InvertLowerTriangle(std::span<const float> lower, int64_t k, std::span<float> inverse, Isa isa,
                         ThreadPool& pool) {
  OCTAVO_CHECK(lower.size() == inverse.size() && static_cast<int64_t>(lower.size()) == k * k);
  const int64_t panels = Tiles(k, kPanel);
  std::vector<PanelSquare> corners(static_cast<size_t>(panels));
  pool.ParallelFor(panels, [&](int64_t panel) {
    const int64_t begin = panel * kPanel;
    InvertBlock(lower.data() + begin * k + begin, k, std::min(kPanel, k - begin),
                &corners[static_cast<size_t>(panel)]);
  });
  // Columns of panels are independent: X_ij = -L_ii^-1 sum over j <= p < i of L_ip X_pj.
  pool.ParallelFor(panels, [&](int64_t j) {
    const int64_t column = j * kPanel;
    const int64_t columns = std::min(kPanel, k - column);
    for (int64_t row = 0; row < column; ++row) {
      std::fill_n(inverse.data() + row * k + column, columns, 0.0F);
    }
    PanelSquare sum;
    for (int64_t i = j; i < panels; ++i) {
      const int64_t row = i * kPanel;
      const int64_t rows = std::min(kPanel, k - row);
      const PanelSquare& corner = corners[static_cast<size_t>(i)];
      float* out = inverse.data() + row * k + column;
      if (i == j) {
        for (int64_t r = 0; r < rows; ++r)
          std::copy_n(corner.data() + r * kPanel, columns, out + r * k);
        continue;
      }
      SgemmTile(false, false, rows, columns, row - column, 1.0F, lower.data() + row * k + column, k,
                inverse.data() + column * k + column, k, 0.0F, sum.data(), kPanel, isa);
      SgemmTile(false, false, rows, columns, rows, -1.0F, corner.data(), kPanel, sum.data(), kPanel,
                0.0F, out, k, isa);
    }
  });
}

}  // namespace octavo
