#include "kernels/matmul_int8/matmul_int8.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/matmul_int8/kernels.h"
#include "kernels/split.h"

namespace octavo {

namespace {

// |sum_k (w + 128) q| and |sum_k (q - zero point) w| are at most 255 * 128 * k, which stays below
// 2^31 up to here.
constexpr int64_t kMaxDepth = 65536;

// What a task should have at least, some microseconds of work: multiply-adds, or, when rows are
// few, bytes of weights that come from memory.
constexpr int64_t kWorkPerTask = int64_t{1} << 20;
constexpr int64_t kBytesPerTask = int64_t{1} << 15;

int64_t DivideUp(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Copies `k` bytes in groups of four, each group `stride` bytes behind the one before, `offset`
// added to each byte (bitwise exclusive or: 0 or 128); the last group is filled up with zeros.
void ScatterGroups(const int8_t* src, int64_t k, uint8_t offset, int64_t stride, uint8_t* dst) {
  const uint32_t flip = offset * 0x01010101U;
  const int64_t whole = k / kInt8Group;
  for (int64_t group = 0; group < whole; ++group) {
    uint32_t four = 0;
    std::memcpy(&four, src + group * kInt8Group, sizeof(four));
    four ^= flip;
    std::memcpy(dst + group * stride, &four, sizeof(four));
  }
  const int64_t rest = k - whole * kInt8Group;
  if (rest == 0) return;
  uint8_t last[kInt8Group] = {};
  for (int64_t i = 0; i < rest; ++i) {
    last[i] = static_cast<uint8_t>(static_cast<uint8_t>(src[whole * kInt8Group + i]) ^ offset);
  }
  std::memcpy(dst + whole * stride, last, sizeof(last));
}

}  // namespace

std::span<const Int8MatmulKernel> Int8MatmulKernels() {
  static constexpr Int8MatmulKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, sum, column_tile, weight_offset, exactness) \
  {Isa::isa, #function, function, sum, column_tile, weight_offset, Exactness::exactness},
#include "kernels/matmul_int8/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

Int8Weights Int8Weights::Pack(std::span<const TensorView> parts, Isa isa, ThreadPool& pool) {
  OCTAVO_CHECK(!parts.empty());
  Int8Weights weights;
  weights.kernel_ = &BestKernel(Int8MatmulKernels(), isa);
  weights.k_ = parts[0].shape.at(1);
  std::vector<const int8_t*> rows;
  for (const TensorView& part : parts) {
    OCTAVO_CHECK(part.shape.size() == 2 && part.shape[1] == weights.k_) << ShapeString(part.shape);
    const int8_t* data = part.data<int8_t>().data();
    for (int64_t j = 0; j < part.shape[0]; ++j) rows.push_back(data + j * weights.k_);
  }
  weights.n_ = static_cast<int64_t>(rows.size());
  OCTAVO_CHECK(weights.n_ >= 1 && weights.k_ >= 1 && weights.k_ <= kMaxDepth)
      << weights.n_ << " x " << weights.k_;

  const int64_t tile = weights.kernel_->column_tile;
  const int64_t tiles = DivideUp(weights.n_, tile);
  const int64_t groups = DivideUp(weights.k_, kInt8Group);
  weights.packed_ = Tensor::InLargePages(DType::kU8, {tiles, groups, tile, kInt8Group});
  weights.column_sums_ = Tensor(DType::kI32, {weights.n_});
  int32_t* sums = weights.column_sums_.mutable_data<int32_t>().data();
  auto* bytes = reinterpret_cast<uint8_t*>(weights.packed_.bytes());
  const int64_t tile_bytes = groups * tile * kInt8Group;
  pool.ParallelFor(tiles, [&](int64_t t) {
    uint8_t* dst = bytes + t * tile_bytes;
    const int64_t columns = std::min(tile, weights.n_ - t * tile);
    if (columns < tile) std::memset(dst, 0, static_cast<size_t>(tile_bytes));
    for (int64_t c = 0; c < columns; ++c) {
      const int8_t* row = rows[static_cast<size_t>(t * tile + c)];
      ScatterGroups(row, weights.k_, weights.kernel_->weight_offset, tile * kInt8Group,
                    dst + c * kInt8Group);
      sums[t * tile + c] = weights.kernel_->sum(row, weights.k_);
    }
  });
  return weights;
}

void MultiplyInt8(const Int8Weights& weights, const Int8Rows& rows,
                  std::span<const float> weight_scales, std::span<const float> bias, float* y,
                  int64_t ldy, ThreadPool& pool) {
  const Int8MatmulKernel& kernel = weights.kernel();
  const int64_t n = weights.n();
  OCTAVO_CHECK(static_cast<int64_t>(weight_scales.size()) == n) << weight_scales.size();
  OCTAVO_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == n) << bias.size();
  const int64_t m = rows.m;
  if (m == 0) return;
  const int64_t k = weights.k();
  std::vector<int32_t> row_sums;
  if (kernel.weight_offset != 0) {
    row_sums.resize(static_cast<size_t>(m));
    // A sum reads bytes, not floats, and does little with them.
    ForEachRow(pool, m, k / 8, [&](int64_t i) {
      row_sums[static_cast<size_t>(i)] = kernel.sum(rows.codes + i * k, k);
    });
  }

  const int64_t depth = DivideUp(k, kInt8Group) * kInt8Group;
  const int64_t tile_bytes = kernel.column_tile * depth;
  const int64_t tiles = std::min(DivideUp(kWorkPerTask, tile_bytes * std::min(m, kInt8BlockRows)),
                                 DivideUp(kBytesPerTask, tile_bytes));
  const int64_t columns = kernel.column_tile * tiles;
  const int64_t row_tasks = DivideUp(m, kInt8BlockRows);
  // Tasks next to each other share a strip of weights.
  pool.ParallelFor(DivideUp(n, columns) * row_tasks, [&](int64_t task) {
    const int64_t j = task / row_tasks * columns;
    const int64_t i = task % row_tasks * kInt8BlockRows;
    kernel.run(
        {.weights = reinterpret_cast<const uint8_t*>(weights.packed_.view().bytes) + j * depth,
         .rows = rows.codes + i * k,
         .k = k,
         .m = std::min(kInt8BlockRows, m - i),
         .n = std::min(columns, n - j),
         .row_sums = row_sums.empty() ? nullptr : row_sums.data() + i,
         .row_scales = rows.scales + i,
         .zero_points = rows.zero_points == nullptr ? nullptr : rows.zero_points + i,
         .column_sums = weights.column_sums_.data<int32_t>().data() + j,
         .weight_scales = weight_scales.data() + j,
         .bias = bias.empty() ? nullptr : bias.data() + j,
         .y = y + i * ldy + j,
         .ldy = ldy});
  });
}

}  // namespace octavo
