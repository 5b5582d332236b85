#include "kernels/matmul_float/matmul_float.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/matmul_float/kernels.h"
#include "kernels/matmul_float/many_rows.h"
#include "kernels/matmul_float/panels.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Up to here our dot products over the stored rows are faster than packing them into panels
// (measured: equal at 32 rows, on matrices of 576 x 576 to 4096 x 4096).
constexpr int64_t kFewRows = 32;

// Elements of w that a task with few rows takes: some microseconds of streaming.
constexpr int64_t kDotElements = 65536;

}  // namespace

std::span<const FloatMatmulKernel> FloatMatmulKernels() {
  static constexpr FloatMatmulKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, dtype, dot, exactness) \
  {Isa::isa, DType::dtype, #dot, dot, Exactness::exactness},
#include "kernels/matmul_float/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

const FloatMatmulKernel& BestFloatMatmulKernel(DType dtype, Isa isa) {
  for (const FloatMatmulKernel& kernel : FloatMatmulKernels()) {
    if (kernel.dtype == dtype && kernel.isa <= isa) return kernel;
  }
  OCTAVO_CHECK(false) << "no dense matmul for weights of " << DTypeName(dtype);
  return FloatMatmulKernels().back();
}

const PanelKernel* FindPanelKernel(DType dtype, Isa isa) {
  static constexpr std::initializer_list<PanelKernel> kKernels = {
#define OCTAVO_PANEL_KERNEL(isa, dtype, pack, multiply, exactness) \
  {Isa::isa, DType::dtype, #multiply, pack, multiply, Exactness::exactness},
#include "kernels/matmul_float/panels.inc"
#undef OCTAVO_PANEL_KERNEL
  };
  const auto* found = std::find_if(
      kKernels.begin(), kKernels.end(),
      [&](const PanelKernel& kernel) { return kernel.dtype == dtype && kernel.isa <= isa; });
  return found == kKernels.end() ? nullptr : found;
}

namespace {

int64_t Parts(int64_t size, int64_t part) {
  return (size + part - 1) / part;
}

void MultiplyFewRows(const TensorView& w, const ManyRows& matmul, const FloatMatmulKernel& kernel,
                     ThreadPool& pool) {
  const int64_t row_bytes = matmul.k * DTypeBytes(w.dtype);
  const int64_t tile = std::max<int64_t>(4, kDotElements / std::max<int64_t>(matmul.k, 1) / 4 * 4);
  pool.ParallelFor(Parts(matmul.n, tile), [&](int64_t task) {
    const int64_t first = task * tile;
    const int64_t rows = std::min(tile, matmul.n - first);
    kernel.dot_rows(w.bytes + first * row_bytes, rows, matmul.k, matmul.x, matmul.ldx, matmul.m,
                    matmul.y + first, matmul.ldy);
    matmul.AddBias(first, rows, 0, matmul.m);
  });
}

}  // namespace

void MultiplyFloat(const TensorView& w, std::span<const float> bias, const float* x, int64_t ldx,
                   int64_t m, float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(w.shape.size() == 2) << ShapeString(w.shape);
  OCTAVO_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == w.shape[0]) << bias.size();
  const ManyRows matmul{.n = w.shape[0],
                        .k = w.shape[1],
                        .bias = bias,
                        .x = x,
                        .ldx = ldx,
                        .m = m,
                        .y = y,
                        .ldy = ldy};
  if (m <= kFewRows) return MultiplyFewRows(w, matmul, BestFloatMatmulKernel(w.dtype, isa), pool);
  const int64_t row_bytes = matmul.k * DTypeBytes(w.dtype);
  if (const PanelKernel* panels = FindPanelKernel(w.dtype, isa)) {
    const auto pack = [&](int64_t first, int64_t rows, int64_t begin, int64_t count, float* panel) {
      panels->pack(w.bytes + first * row_bytes + begin * DTypeBytes(w.dtype), matmul.k, rows, count,
                   panel);
    };
    return MultiplyByPanels(matmul, *panels, pack, pool);
  }
  const auto widen = [&](int64_t first, int64_t rows, float* wide) {
    const TensorView stored{
        .dtype = w.dtype, .shape = {rows, matmul.k}, .bytes = w.bytes + first * row_bytes};
    OCTAVO_CHECK(ToFloat(stored, {wide, static_cast<size_t>(rows * matmul.k)}).ok());
  };
  MultiplyBySgemm(matmul, widen, isa, pool);
}

}  // namespace octavo
