#include "kernels/matmul_int4/matmul_int4.h"

#include <algorithm>
#include <cstring>

#include "kernels/matmul_coded/kernels.h"
#include "kernels/matmul_int4/kernels.h"
#include "kernels/matmul_int8/kernels.h"
#include "kernels/split.h"

namespace octavo {

int64_t Int4Parts::per_group() const {
  return (group + kInt4Part - 1) / kInt4Part;
}

int64_t Int4Parts::count() const {
  const int64_t whole = k / group;
  return whole * per_group() + (k % group + kInt4Part - 1) / kInt4Part;
}

Int4Part Int4Parts::At(int64_t part) const {
  const int64_t of_group = part / per_group();
  const int64_t begin = of_group * group + part % per_group() * kInt4Part;
  const int64_t group_end = of_group * group + group < k ? of_group * group + group : k;
  return {begin, begin + kInt4Part < group_end ? begin + kInt4Part : group_end, of_group};
}

namespace {

// What a task should have at least, some microseconds of work: multiply-adds, or, when rows are
// few, bytes of weights that come from memory.
constexpr int64_t kWorkPerTask = int64_t{1} << 20;
constexpr int64_t kBytesPerTask = int64_t{1} << 15;

int64_t DivideUp(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Four nibbles to the low halves of four bytes.
uint32_t Spread(uint32_t nibbles) {
  nibbles = (nibbles | nibbles << 8) & 0x00FF00FFU;
  return (nibbles | nibbles << 4) & 0x0F0F0F0FU;
}

// A row's nibbles, two neighbours a byte, to steps `stride` bytes apart; missing ones zero.
void ScatterSteps(const uint8_t* src, int64_t k, int64_t stride, uint8_t* dst) {
  for (int64_t l = 0; l < k; l += kInt4Step, dst += stride) {
    const int64_t count = std::min(kInt4Step, k - l);
    uint32_t codes = 0;
    std::memcpy(&codes, src + l / 2, static_cast<size_t>(DivideUp(count, 2)));
    if (count < kInt4Step) codes &= (1U << (count * 4)) - 1;
    const uint32_t step = Spread(codes & 0xFFFFU) | Spread(codes >> 16) << 4;
    std::memcpy(dst, &step, sizeof(step));
  }
}

bool IsWhole(const CodedMatrix& matrix) {
  return matrix.unit_columns >= matrix.k;
}

}  // namespace

std::span<const Int4MatmulKernel> Int4MatmulKernels() {
  static constexpr Int4MatmulKernel kKernels[] = {
#define OCTAVO_KERNEL(isa, function, column_tile, exactness) \
  {Isa::isa, #function, function, column_tile, Exactness::exactness},
#include "kernels/matmul_int4/kernels.inc"
#undef OCTAVO_KERNEL
  };
  return kKernels;
}

bool Int4Weights::Takes(const CodedMatrix& matrix, int64_t input_group) {
  if (matrix.format != CodeFormat::kNibble) return false;
  if (!IsWhole(matrix) && matrix.unit_columns % kInt4Step != 0) return false;
  if (input_group == 0 || input_group >= matrix.k) return true;
  return input_group % kInt4Step == 0 &&
         (IsWhole(matrix) || matrix.unit_columns % input_group == 0);
}

Int4Weights Int4Weights::Pack(std::span<const CodedMatrix> parts, int64_t input_group, Isa isa,
                              ThreadPool& pool) {
  OCTAVO_CHECK(!parts.empty());
  Int4Weights weights;
  weights.kernel_ = &BestKernel(Int4MatmulKernels(), isa);
  weights.k_ = parts[0].k;
  weights.group_ = input_group == 0 ? weights.k_ : std::min(input_group, weights.k_);
  std::vector<const uint8_t*> rows;
  bool has_zero_points = false;
  for (const CodedMatrix& part : parts) {
    OCTAVO_CHECK(part.k == weights.k_ && Takes(part, input_group)) << part.k;
    for (int64_t j = 0; j < part.n; ++j) rows.push_back(part.codes + j * part.row_bytes);
    if (input_group == 0) weights.group_ = std::min(weights.group_, part.unit_columns);
    has_zero_points = has_zero_points || part.zero_points != nullptr;
  }
  weights.n_ = static_cast<int64_t>(rows.size());
  OCTAVO_CHECK(weights.n_ >= 1 && weights.k_ >= 1) << weights.n_ << " x " << weights.k_;

  const Shape grid = {weights.groups(), weights.n_};
  weights.scales_ = Tensor(DType::kF32, grid);
  if (has_zero_points) weights.offsets_ = Tensor(DType::kI32, grid);
  int64_t first = 0;
  for (const CodedMatrix& part : parts) {
    for (int64_t g = 0; g < weights.groups(); ++g) {
      for (int64_t j = 0; j < part.n; ++j) {
        const int64_t unit = j / part.unit_rows * part.scale_columns +
                             (IsWhole(part) ? 0 : g * weights.group_ / part.unit_columns);
        const auto at = static_cast<size_t>(g * weights.n_ + first + j);
        weights.scales_.mutable_data<float>()[at] = ScaleAt(part, unit);
        if (!has_zero_points) continue;
        const int32_t zero_point = part.zero_points == nullptr ? 0 : part.zero_points[unit];
        weights.offsets_.mutable_data<int32_t>()[at] = 8 + zero_point;
      }
    }
    first += part.n;
  }

  const int64_t tile = weights.kernel_->column_tile;
  const int64_t tiles = DivideUp(weights.n_, tile);
  const int64_t steps = DivideUp(weights.k_, kInt4Step);
  weights.packed_ = Tensor::InLargePages(DType::kU8, {tiles, steps, tile, kInt4Step / 2});
  auto* bytes = reinterpret_cast<uint8_t*>(weights.packed_.bytes());
  const int64_t tile_bytes = steps * tile * kInt4Step / 2;
  pool.ParallelFor(tiles, [&](int64_t t) {
    uint8_t* dst = bytes + t * tile_bytes;
    const int64_t columns = std::min(tile, weights.n_ - t * tile);
    if (columns < tile) std::memset(dst, 0, static_cast<size_t>(tile_bytes));
    for (int64_t c = 0; c < columns; ++c) {
      ScatterSteps(rows[static_cast<size_t>(t * tile + c)], weights.k_, tile * kInt4Step / 2,
                   dst + c * kInt4Step / 2);
    }
  });
  return weights;
}

int64_t Int4Weights::owned_bytes() const {
  return packed_.num_bytes() + scales_.num_bytes() + (offsets_.empty() ? 0 : offsets_.num_bytes());
}

void MultiplyInt4(const Int4Weights& weights, const Int4Rows& rows, std::span<const float> bias,
                  float* y, int64_t ldy, ThreadPool& pool) {
  const Int4MatmulKernel& kernel = weights.kernel();
  const int64_t n = weights.n();
  const int64_t k = weights.k();
  const int64_t m = rows.m;
  OCTAVO_CHECK(bias.empty() || static_cast<int64_t>(bias.size()) == n) << bias.size();
  if (m == 0) return;
  const Int4Parts parts{.k = k, .group = weights.group_};
  const int64_t num_parts = parts.count();
  std::vector<int32_t> row_sums(static_cast<size_t>(m * num_parts));
  SumInt8* sum = BestKernel(Int8MatmulKernels(), kernel.isa).sum;
  // A sum reads bytes, not floats, and does little with them.
  ForEachRow(pool, m, k / 8, [&](int64_t i) {
    for (int64_t p = 0; p < num_parts; ++p) {
      const Int4Part part = parts.At(p);
      row_sums[static_cast<size_t>(i * num_parts + p)] =
          sum(rows.codes + i * k + part.begin, part.end - part.begin);
    }
  });

  const int64_t column_bytes = DivideUp(k, kInt4Step) * kInt4Step / 2;
  const int64_t tile_bytes = kernel.column_tile * column_bytes;
  const int64_t tiles =
      std::min(DivideUp(kWorkPerTask, 2 * tile_bytes * std::min(m, kInt4BlockRows)),
               DivideUp(kBytesPerTask, tile_bytes));
  const int64_t columns = kernel.column_tile * tiles;
  const int64_t row_tasks = DivideUp(m, kInt4BlockRows);
  const int64_t scales_stride = rows.scales_of_groups ? weights.groups() : 1;
  // Tasks next to each other share a strip of weights.
  pool.ParallelFor(DivideUp(n, columns) * row_tasks, [&](int64_t task) {
    const int64_t j = task / row_tasks * columns;
    const int64_t i = task % row_tasks * kInt4BlockRows;
    kernel.run({.weights = weights.packed_.data<uint8_t>().data() + j * column_bytes,
                .rows = rows.codes + i * k,
                .parts = parts,
                .m = std::min(kInt4BlockRows, m - i),
                .n = std::min(columns, n - j),
                .row_sums = row_sums.data() + i * num_parts,
                .row_scales = rows.scales + i * scales_stride,
                .row_scales_stride = scales_stride,
                .scales_of_groups = rows.scales_of_groups,
                .weight_scales = weights.scales_.data<float>().data() + j,
                .offsets = weights.offsets_.empty() ? nullptr
                                                    : weights.offsets_.data<int32_t>().data() + j,
                .scales_stride = n,
                .bias = bias.empty() ? nullptr : bias.data() + j,
                .y = y + i * ldy + j,
                .ldy = ldy});
  });
}

}  // namespace octavo
