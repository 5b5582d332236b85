#include "kernels/matmul_float/many_rows.h"

#include <algorithm>

#include "kernels/matmul_float/matmul_float.h"
#include "kernels/scratch.h"

namespace octavo {

namespace {

// Floats of w that are packed at a time, so that a large matrix is never copied whole; the panels
// and the rows of x of a task, which stay in L2 while it runs.
constexpr int64_t kPackedElements = int64_t{4} << 20;
constexpr int64_t kTaskPanels = 4;
constexpr int64_t kTaskRows = 128;

// Rows of w that sgemm takes: a tile whose f32 copy stays in L2 (128 x 4096 floats are 2 MiB).
constexpr int64_t kSgemmRows = 128;

int64_t Parts(int64_t size, int64_t part) {
  return (size + part - 1) / part;
}

}  // namespace

void ManyRows::AddBias(int64_t first, int64_t columns, int64_t row, int64_t rows) const {
  if (bias.empty()) return;
  for (int64_t i = row; i < row + rows; ++i) {
    for (int64_t j = first; j < first + columns; ++j)
      y[i * ldy + j] += bias[static_cast<size_t>(j)];
  }
}

void MultiplyByPanels(const ManyRows& matmul, const PanelKernel& kernel, const WriteRows& pack,
                      ThreadPool& pool) {
  const int64_t k = matmul.k;
  const int64_t panel_size = std::max<int64_t>(k, 1) * kPanelColumns;
  const int64_t total = Parts(matmul.n, kPanelColumns);
  const int64_t at_once = std::min(total, std::max<int64_t>(1, kPackedElements / panel_size));
  float* packed = ThreadScratch(at_once * panel_size);
  const auto columns_of = [&](int64_t panel) {
    return std::min(kPanelColumns, matmul.n - panel * kPanelColumns);
  };
  for (int64_t begin = 0; begin < total; begin += at_once) {
    const int64_t end = std::min(begin + at_once, total);
    pool.ParallelFor(end - begin, [&](int64_t i) {
      pack((begin + i) * kPanelColumns, columns_of(begin + i), packed + i * panel_size);
    });
    const int64_t groups = Parts(end - begin, kTaskPanels);
    pool.ParallelFor(groups * Parts(matmul.m, kTaskRows), [&](int64_t task) {
      const int64_t row = task / groups * kTaskRows;
      const int64_t rows = std::min(kTaskRows, matmul.m - row);
      const int64_t first = begin + task % groups * kTaskPanels;
      const PanelRows x{.data = matmul.x + row * matmul.ldx, .row_stride = matmul.ldx};
      for (int64_t panel = first; panel < std::min(first + kTaskPanels, end); ++panel) {
        const int64_t column = panel * kPanelColumns;
        kernel.multiply(x, rows, packed + (panel - begin) * panel_size, k,
                        {.c = matmul.y + row * matmul.ldy + column,
                         .ldc = matmul.ldy,
                         .columns = columns_of(panel)});
        matmul.AddBias(column, columns_of(panel), row, rows);
      }
    });
  }
}

void MultiplyBySgemm(const ManyRows& matmul, const WriteRows& widen, Isa isa, ThreadPool& pool) {
  const int64_t k = matmul.k;
  pool.ParallelFor(Parts(matmul.n, kSgemmRows), [&](int64_t task) {
    const int64_t first = task * kSgemmRows;
    const int64_t rows = std::min(kSgemmRows, matmul.n - first);
    float* wide = ThreadScratch(rows * k);
    widen(first, rows, wide);
    SgemmTile(false, true, matmul.m, rows, k, 1.0F, matmul.x, matmul.ldx, wide, k, 0.0F,
              matmul.y + first, matmul.ldy, isa);
    matmul.AddBias(first, rows, 0, matmul.m);
  });
}

}  // namespace octavo
