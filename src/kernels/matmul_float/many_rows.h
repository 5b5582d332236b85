// Dense matmul for many rows, whatever the right-hand matrix is stored as.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "kernels/matmul_float/panels.h"

namespace octavo {

// The operands that are floats: y [m, n] = x [m, k] w^T + bias, as in matmul_float.h.
struct ManyRows {
  int64_t n = 0;
  int64_t k = 0;
  std::span<const float> bias;
  const float* x = nullptr;
  int64_t ldx = 0;
  int64_t m = 0;
  float* y = nullptr;
  int64_t ldy = 0;

  void AddBias(int64_t first, int64_t columns, int64_t row, int64_t rows) const;
};

// Puts rows [first, first + rows) of w where sgemm wants them, [rows, k].
using WriteRows = std::function<void(int64_t first, int64_t rows, float* out)>;

// Packs steps [begin, begin + count) of rows [first, first + rows) of w, for a panel.
using PackSteps =
    std::function<void(int64_t first, int64_t rows, int64_t begin, int64_t count, float* panel)>;

// A task packs kPanelSteps of some panels, multiplies them by all of its rows of x, and goes on
// with the next: w is never copied whole, what is packed stays in L2. `pack` must not ask for the
// thread's scratch.
void MultiplyByPanels(const ManyRows& matmul, const PanelKernel& kernel, const PackSteps& pack,
                      ThreadPool& pool);

// oneDNN's sgemm on tiles of fixed size, each widened to float32 before: where no panel kernel is.
void MultiplyBySgemm(const ManyRows& matmul, const WriteRows& widen, Isa isa, ThreadPool& pool);

}  // namespace octavo
