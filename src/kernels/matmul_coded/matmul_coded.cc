#include "kernels/matmul_coded/matmul_coded.h"

#include <algorithm>
#include <vector>

#include "kernels/matmul_coded/kernels.h"
#include "kernels/matmul_float/many_rows.h"
#include "kernels/scratch.h"

namespace octavo {

namespace {

// Up to here each code is decoded once for all rows in registers; beyond, panels are cheaper.
constexpr int64_t kFewRows = 8;

// Codes that a task with few rows takes: some microseconds of streaming.
constexpr int64_t kDotElements = 131072;

// Vector kernels take groups that are multiples of this; others, which are rare, take the
// reference.
constexpr int64_t kGroupStep = 16;

int64_t Parts(int64_t size, int64_t part) {
  return (size + part - 1) / part;
}

// A whole block of inputs as kernels with c neighbours in a lane want it: see CodedInput.
template <int64_t C>
void ArrangeBlock(const float* x, float* arranged) {
  for (int64_t begin = 0; begin < kInputBlock; begin += 16 * C) {
    for (int64_t i = 0; i < C; ++i) {
      for (int64_t d = 0; d < 16; ++d) arranged[begin + 16 * i + d] = x[begin + C * d + i];
    }
  }
}

void ArrangeBlock(int64_t lane_columns, const float* x, float* arranged) {
  if (lane_columns == 8) return ArrangeBlock<8>(x, arranged);
  if (lane_columns == 4) return ArrangeBlock<4>(x, arranged);
  OCTAVO_CHECK(lane_columns == 1) << lane_columns;
  std::copy_n(x, kInputBlock, arranged);
}

// Of each word of eight columns the sum.
void SumWords(const float* x, float* sums) {
  for (int64_t word = 0; word < kInputBlock / 8; ++word, x += 8)
    sums[word] = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

// x as CodedInput describes it, in the calling thread's scratch.
CodedInput Arrange(const CodedMatrix& w, const ManyRows& matmul, int64_t lane_columns) {
  const int64_t blocks = Parts(w.k, kInputBlock);
  const int64_t width = blocks * kInputBlock;
  const int64_t words = w.zero_points == nullptr ? 0 : blocks * 16;
  float* arranged = ThreadScratch(matmul.m * (width + words));
  float* word_sums = arranged + matmul.m * width;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t i = 0; i < matmul.m; ++i) {
      const float* x = matmul.x + i * matmul.ldx + block * kInputBlock;
      float filled[kInputBlock];
      if (const int64_t left = w.k - block * kInputBlock; left < kInputBlock) {
        std::fill(std::copy_n(x, left, filled), filled + kInputBlock, 0.0F);
        x = filled;
      }
      ArrangeBlock(lane_columns, x, arranged + (block * matmul.m + i) * kInputBlock);
      if (words != 0) SumWords(x, word_sums + (block * matmul.m + i) * 16);
    }
  }
  return {.x = matmul.x,
          .ldx = matmul.ldx,
          .m = matmul.m,
          .arranged = arranged,
          .blocks = blocks,
          .word_sums = words == 0 ? nullptr : word_sums};
}

void MultiplyFewRows(const CodedMatrix& w, const ManyRows& matmul, const CodedKernel& kernel,
                     ThreadPool& pool) {
  const CodedInput input = Arrange(w, matmul, kernel.lane_columns);
  const int64_t tile = std::max<int64_t>(4, kDotElements / std::max<int64_t>(w.k, 1) / 4 * 4);
  pool.ParallelFor(Parts(w.n, tile), [&](int64_t task) {
    const int64_t first = task * tile;
    const int64_t rows = std::min(tile, w.n - first);
    kernel.dot(w, first, rows, input, matmul.y + first, matmul.ldy);
    matmul.AddBias(first, rows, 0, matmul.m);
  });
}

const CodedKernel& KernelFor(const CodedMatrix& w, Isa isa) {
  const bool whole_groups = w.unit_columns >= w.k || w.unit_columns % kGroupStep == 0;
  return BestCodedKernel(w.format, whole_groups ? isa : Isa::kRef);
}

// Steps [begin, begin + count) of some rows of w, decoded and packed.
void PackCoded(const CodedMatrix& w, const CodedKernel& kernel, const PanelKernel& panels,
               int64_t first, int64_t rows, int64_t begin, int64_t count, float* panel) {
  static_assert(kPanelSteps % kInputBlock == 0);
  alignas(64) float decoded[kPanelColumns * kPanelSteps];
  for (int64_t row = 0; row < rows; ++row)
    kernel.decode(w, first + row, begin, count, decoded + row * count);
  panels.pack(decoded, count, rows, count, panel);
}

}  // namespace

std::span<const CodedKernel> CodedKernels() {
  static constexpr CodedKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, format, decode, dot, lane_columns, exactness) \
  {Isa::isa, CodeFormat::format, #dot, decode, dot, lane_columns, Exactness::exactness},
#include "kernels/matmul_coded/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

const CodedKernel& BestCodedKernel(CodeFormat format, Isa isa) {
  for (const CodedKernel& kernel : CodedKernels()) {
    if (kernel.format == format && kernel.isa <= isa) return kernel;
  }
  OCTAVO_CHECK(false) << "no kernel for codes of format " << static_cast<int>(format);
  return CodedKernels().back();
}

void MultiplyCoded(const CodedMatrix& w, std::span<const float> bias, const float* x, int64_t ldx,
                   int64_t m, float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == w.n) << bias.size();
  const ManyRows matmul{
      .n = w.n, .k = w.k, .bias = bias, .x = x, .ldx = ldx, .m = m, .y = y, .ldy = ldy};
  const CodedKernel& kernel = KernelFor(w, isa);
  if (m <= kFewRows) return MultiplyFewRows(w, matmul, kernel, pool);
  if (const PanelKernel* panels = FindPanelKernel(DType::kF32, isa)) {
    const auto pack = [&](int64_t first, int64_t rows, int64_t begin, int64_t count, float* panel) {
      PackCoded(w, kernel, *panels, first, rows, begin, count, panel);
    };
    return MultiplyByPanels(matmul, *panels, pack, pool);
  }
  const auto widen = [&](int64_t first, int64_t rows, float* wide) {
    for (int64_t row = 0; row < rows; ++row)
      kernel.decode(w, first + row, 0, w.k, wide + row * w.k);
  };
  MultiplyBySgemm(matmul, widen, isa, pool);
}

void DecodeRow(const CodedMatrix& w, int64_t row, float* out, Isa isa) {
  KernelFor(w, isa).decode(w, row, 0, w.k, out);
}

}  // namespace octavo
