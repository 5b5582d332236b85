// Dense matmul for many rows: the right-hand matrix is packed into panels of 48 columns, f32, and
// every block of rows then reads it from there.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"
#include "tensor/dtype.h"

namespace octavo {

// A panel is [k][kPanelColumns] f32: the columns of w^T that one pass of the kernel computes,
// columns that do not exist zero. Three vectors wide and eight rows high a tile keeps 24 sums in
// registers, enough to hide the latency of their additions, and loads 11 values for 24
// multiplications.
inline constexpr int64_t kPanelColumns = 48;

// Steps of k that are summed at a time: 24 KiB of the panel, which stay in L1 for all rows.
inline constexpr int64_t kPanelSteps = 128;

// panel <- w [rows, k] in the kernel's dtype, of any alignment, `stride` elements from row to row,
// transposed; rows <= kPanelColumns.
using PackPanel = void(const void* w, int64_t stride, int64_t rows, int64_t k, float* panel);

// Where the rows of the left-hand matrix lie: a[i * row_stride + l * step_stride].
struct PanelRows {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t step_stride = 1;
};

// c [m, columns] with ldc: c = sum, or c += scale * sum, where sum[i, j] = sum over l < k of a[i,
// l] panel[l, j], in parts of kPanelSteps; columns <= kPanelColumns.
struct PanelOutput {
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t columns = 0;
  bool add = false;
  float scale = 1;
};
using MultiplyPanel = void(const PanelRows& a, int64_t m, const float* panel, int64_t k,
                           const PanelOutput& output);

struct PanelKernel {
  Isa isa;
  DType dtype;
  const char* name;
  PackPanel* pack;
  MultiplyPanel* multiply;
  Exactness exactness;
};

#define OCTAVO_PANEL_KERNEL(isa, dtype, pack, multiply, exactness) \
  PackPanel pack;                                                  \
  MultiplyPanel multiply;
#include "kernels/matmul_float/panels.inc"
#undef OCTAVO_PANEL_KERNEL

// The best kernel for a right-hand matrix of `dtype` that `isa` allows; null: none, use SgemmTile.
const PanelKernel* FindPanelKernel(DType dtype, Isa isa);

}  // namespace octavo
