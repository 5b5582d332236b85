#include "kernels/matmul_float/many_rows.h"

#include <algorithm>

#include "kernels/matmul_float/matmul_float.h"
#include "kernels/scratch.h"

namespace octavo {

namespace {

// A task: panels and rows of x. Its part of y, and the steps of both that it works on, stay in L2.
// Where that gives few tasks for so many columns, tasks are narrower.
constexpr int64_t kTaskPanels = 4;
constexpr int64_t kTaskRows = 512;
constexpr int64_t kFewTasks = 8;

// Rows of x that are brought together at a time.
constexpr int64_t kRowsTogether = 128;

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

namespace {

// What MultiplyByPanels hands to a task: panels [first, last), rows [row, row + rows) of x.
struct PanelTask {
  const ManyRows& matmul;
  const PanelKernel& kernel;
  const PackSteps& pack;
  int64_t first;
  int64_t last;
  int64_t row;
  int64_t rows;

  int64_t columns_of(int64_t panel) const {
    return std::min(kPanelColumns, matmul.n - panel * kPanelColumns);
  }

  // Steps [l, l + steps).
  void Multiply(int64_t l, int64_t steps, float* packed, float* together) const {
    constexpr int64_t kPackedPanel = kPanelSteps * kPanelColumns;
    for (int64_t panel = first; panel < last; ++panel) {
      pack(panel * kPanelColumns, columns_of(panel), l, steps,
           packed + (panel - first) * kPackedPanel);
    }
    for (int64_t i = row; i < row + rows; i += kRowsTogether) {
      const int64_t count = std::min(kRowsTogether, row + rows - i);
      // Rows of x often lie a multiple of 4 KiB apart, all in the same lines of L1.
      for (int64_t r = 0; r < count; ++r)
        std::copy_n(matmul.x + (i + r) * matmul.ldx + l, steps, together + r * kPanelSteps);
      for (int64_t panel = first; panel < last; ++panel) {
        kernel.multiply({.data = together, .row_stride = kPanelSteps}, count,
                        packed + (panel - first) * kPackedPanel, steps,
                        {.c = matmul.y + i * matmul.ldy + panel * kPanelColumns,
                         .ldc = matmul.ldy,
                         .columns = columns_of(panel),
                         .add = l > 0});
      }
    }
  }

  void Run() const {
    alignas(64) float packed[kTaskPanels * kPanelSteps * kPanelColumns];
    alignas(64) float together[kRowsTogether * kPanelSteps];
    int64_t l = 0;
    do {  // also for k = 0, which gives zeros
      Multiply(l, std::min(kPanelSteps, matmul.k - l), packed, together);
      l += kPanelSteps;
    } while (l < matmul.k);
    const int64_t column = first * kPanelColumns;
    matmul.AddBias(column, std::min(last * kPanelColumns, matmul.n) - column, row, rows);
  }
};

}  // namespace

void MultiplyByPanels(const ManyRows& matmul, const PanelKernel& kernel, const PackSteps& pack,
                      ThreadPool& pool) {
  const int64_t panels = Parts(matmul.n, kPanelColumns);
  const int64_t row_tasks = Parts(matmul.m, kTaskRows);
  const int64_t width = std::clamp<int64_t>(panels * row_tasks / kFewTasks, 1, kTaskPanels);
  pool.ParallelFor(Parts(panels, width) * row_tasks, [&](int64_t task) {
    const int64_t first = task / row_tasks * width;
    const int64_t row = task % row_tasks * kTaskRows;
    PanelTask{.matmul = matmul,
              .kernel = kernel,
              .pack = pack,
              .first = first,
              .last = std::min(first + width, panels),
              .row = row,
              .rows = std::min(kTaskRows, matmul.m - row)}
        .Run();
  });
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
