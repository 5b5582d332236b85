#include "kernels/matmul_float/matmul_float.h"

#include <algorithm>

#include "kernels/matmul_float/kernels.h"
#include "kernels/scratch.h"

namespace octavo {

namespace {

// Up to here our dot products over the stored rows are faster than widening them for oneDNN
// (measured: equal at 32 rows, on matrices of 576 x 576 to 4096 x 4096).
constexpr int64_t kFewRows = 32;

// Rows of w a task takes. Few rows of x: some microseconds of streaming. Many: a tile whose f32
// copy stays in L2 (128 x 4096 floats are 2 MiB).
constexpr int64_t kDotElements = 65536;
constexpr int64_t kTileRows = 128;

// Bias as the matmul's last step, on columns [first, first + n).
void AddBias(std::span<const float> bias, int64_t first, int64_t n, int64_t m, float* y,
             int64_t ldy) {
  if (bias.empty()) return;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) y[i * ldy + j] += bias[static_cast<size_t>(first + j)];
  }
}

}  // namespace

std::span<const FloatMatmulKernel> FloatMatmulKernels() {
  static constexpr FloatMatmulKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, dtype, dot, widen, exactness) \
  {Isa::isa, DType::dtype, #dot, dot, widen, Exactness::exactness},
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

void MultiplyFloat(const TensorView& w, std::span<const float> bias, const float* x, int64_t ldx,
                   int64_t m, float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(w.shape.size() == 2) << ShapeString(w.shape);
  const int64_t n = w.shape[0];
  const int64_t k = w.shape[1];
  OCTAVO_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == n) << bias.size();
  const FloatMatmulKernel& kernel = BestFloatMatmulKernel(w.dtype, isa);
  const int64_t row_bytes = k * DTypeBytes(w.dtype);
  const bool few = m <= kFewRows;
  const int64_t tile =
      few ? std::max<int64_t>(4, kDotElements / std::max<int64_t>(k, 1) / 4 * 4) : kTileRows;
  pool.ParallelFor((n + tile - 1) / tile, [&](int64_t task) {
    const int64_t first = task * tile;
    const int64_t rows = std::min(tile, n - first);
    const std::byte* stored = w.bytes + first * row_bytes;
    if (few) {
      kernel.dot_rows(stored, rows, k, x, ldx, m, y + first, ldy);
    } else {
      float* wide = ThreadScratch(rows * k);
      kernel.widen(stored, rows * k, wide);
      SgemmTile(false, true, m, rows, k, 1.0F, x, ldx, wide, k, 0.0F, y + first, ldy, isa);
    }
    AddBias(bias, first, rows, m, y + first, ldy);
  });
}

}  // namespace octavo
