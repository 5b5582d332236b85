#include "kernels/matmul_float/matmul_float.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/matmul_float/kernels.h"
#include "kernels/matmul_float/panels.h"
#include "kernels/scratch.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Up to here our dot products over the stored rows are faster than packing them into panels
// (measured: equal at 32 rows, on matrices of 576 x 576 to 4096 x 4096).
constexpr int64_t kFewRows = 32;

// Elements of w that a task with few rows takes: some microseconds of streaming.
constexpr int64_t kDotElements = 65536;

// Many rows: floats of w that are packed at a time, so that a large matrix is never copied whole;
// the panels and the rows of x of a task, which stay in L2 while it runs.
constexpr int64_t kPackedElements = int64_t{4} << 20;
constexpr int64_t kTaskPanels = 4;
constexpr int64_t kTaskRows = 128;

// Rows of w that sgemm takes: a tile whose f32 copy stays in L2 (128 x 4096 floats are 2 MiB).
constexpr int64_t kSgemmRows = 128;

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

// One matmul's operands.
struct FloatMatmul {
  const TensorView& w;
  std::span<const float> bias;
  const float* x;
  int64_t ldx;
  int64_t m;
  float* y;
  int64_t ldy;

  int64_t n() const { return w.shape[0]; }
  int64_t k() const { return w.shape[1]; }
  const std::byte* row(int64_t i) const { return w.bytes + i * k() * DTypeBytes(w.dtype); }
};

void MultiplyFewRows(const FloatMatmul& matmul, const FloatMatmulKernel& kernel, ThreadPool& pool) {
  const int64_t tile =
      std::max<int64_t>(4, kDotElements / std::max<int64_t>(matmul.k(), 1) / 4 * 4);
  pool.ParallelFor(Parts(matmul.n(), tile), [&](int64_t task) {
    const int64_t first = task * tile;
    const int64_t rows = std::min(tile, matmul.n() - first);
    kernel.dot_rows(matmul.row(first), rows, matmul.k(), matmul.x, matmul.ldx, matmul.m,
                    matmul.y + first, matmul.ldy);
    AddBias(matmul.bias, first, rows, matmul.m, matmul.y + first, matmul.ldy);
  });
}

// All threads pack some panels, then all multiply blocks of rows by groups of panels.
void MultiplyPanels(const FloatMatmul& matmul, const PanelKernel& kernel, ThreadPool& pool) {
  const int64_t k = matmul.k();
  const int64_t panel_size = std::max<int64_t>(k, 1) * kPanelColumns;
  const int64_t total = Parts(matmul.n(), kPanelColumns);
  const int64_t at_once = std::min(total, std::max<int64_t>(1, kPackedElements / panel_size));
  float* packed = ThreadScratch(at_once * panel_size);
  const auto columns_of = [&](int64_t panel) {
    return std::min(kPanelColumns, matmul.n() - panel * kPanelColumns);
  };
  for (int64_t begin = 0; begin < total; begin += at_once) {
    const int64_t end = std::min(begin + at_once, total);
    pool.ParallelFor(end - begin, [&](int64_t i) {
      kernel.pack(matmul.row((begin + i) * kPanelColumns), columns_of(begin + i), k,
                  packed + i * panel_size);
    });
    const int64_t groups = Parts(end - begin, kTaskPanels);
    pool.ParallelFor(groups * Parts(matmul.m, kTaskRows), [&](int64_t task) {
      const int64_t row = task / groups * kTaskRows;
      const int64_t rows = std::min(kTaskRows, matmul.m - row);
      const int64_t first = begin + task % groups * kTaskPanels;
      const PanelRows x{.data = matmul.x + row * matmul.ldx, .row_stride = matmul.ldx};
      for (int64_t panel = first; panel < std::min(first + kTaskPanels, end); ++panel) {
        const int64_t column = panel * kPanelColumns;
        float* y = matmul.y + row * matmul.ldy + column;
        kernel.multiply(x, rows, packed + (panel - begin) * panel_size, k,
                        {.c = y, .ldc = matmul.ldy, .columns = columns_of(panel)});
        AddBias(matmul.bias, column, columns_of(panel), rows, y, matmul.ldy);
      }
    });
  }
}

void MultiplySgemm(const FloatMatmul& matmul, Isa isa, ThreadPool& pool) {
  const int64_t k = matmul.k();
  pool.ParallelFor(Parts(matmul.n(), kSgemmRows), [&](int64_t task) {
    const int64_t first = task * kSgemmRows;
    const int64_t rows = std::min(kSgemmRows, matmul.n() - first);
    const TensorView stored{
        .dtype = matmul.w.dtype, .shape = {rows, k}, .bytes = matmul.row(first)};
    float* wide = ThreadScratch(rows * k);
    OCTAVO_CHECK(ToFloat(stored, {wide, static_cast<size_t>(rows * k)}).ok());
    float* y = matmul.y + first;
    SgemmTile(false, true, matmul.m, rows, k, 1.0F, matmul.x, matmul.ldx, wide, k, 0.0F, y,
              matmul.ldy, isa);
    AddBias(matmul.bias, first, rows, matmul.m, y, matmul.ldy);
  });
}

}  // namespace

void MultiplyFloat(const TensorView& w, std::span<const float> bias, const float* x, int64_t ldx,
                   int64_t m, float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(w.shape.size() == 2) << ShapeString(w.shape);
  OCTAVO_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == w.shape[0]) << bias.size();
  const FloatMatmul matmul{w, bias, x, ldx, m, y, ldy};
  if (m <= kFewRows) return MultiplyFewRows(matmul, BestFloatMatmulKernel(w.dtype, isa), pool);
  const PanelKernel* panels = FindPanelKernel(w.dtype, isa);
  if (panels != nullptr) return MultiplyPanels(matmul, *panels, pool);
  MultiplySgemm(matmul, isa, pool);
}

}  // namespace octavo
