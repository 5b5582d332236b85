// INT8 matmul on AVX2: a tile of 4 rows x 8 columns in 8 accumulators, in 16-bit steps.
//
// vpmaddubsw, the byte instruction of AVX2, saturates sums of two products, and its remedy (|w|
// times q with w's sign) is wrong where -128 meets a negative number. So bytes are widened and
// vpmaddwd adds two exact products: as many multiply-adds an instruction as the byte way with its
// correction.
//
// A group (four values of k) of four columns is 16 bytes, widened to a vector; a row's four values
// are 8 bytes, widened once a block and broadcast. Each column has two lanes:
//
//     weights  | c0: k0 k1 | c0: k2 k3 | c1: k0 k1 | c1: k2 k3 | c2 .. | c2 .. | c3 .. | c3 .. |
//     row      |     k0 k1 |     k2 k3 |     k0 k1 |     k2 k3 | ...
//
// 8 vpmaddwd and 8 vpaddd for 2 widening loads and 4 broadcasts.
#include "kernels/matmul_int8/kernels.h"
#include "kernels/scratch.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

namespace {

constexpr int kRowTile = 4;
constexpr int kColumnVectors = 2;
constexpr int64_t kColumnTile = 4 * kColumnVectors;
constexpr int64_t kGroupBytes = kColumnTile * kInt8Group;

// How far ahead of their use weights are asked for.
constexpr int64_t kPrefetchBytes = 1024;

// The rows of the block as 16-bit numbers, zeros behind each up to a whole group.
void WidenRows(const Int8Block& block, int16_t* wide) {
  const int64_t depth = block.groups() * kInt8Group;
  for (int64_t i = 0; i < block.m; ++i) {
    const int8_t* row = block.rows + i * block.k;
    int16_t* dst = wide + i * depth;
    int64_t l = 0;
    for (; l + 16 <= block.k; l += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + l));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + l), _mm256_cvtepi8_epi16(bytes));
    }
    for (; l < block.k; ++l) dst[l] = row[l];
    for (; l < depth; ++l) dst[l] = 0;
  }
}

// The epilogue of 8 columns of a row.
struct Epilogue {
  __m256i mask;
  __m256i column_sums;
  __m256 weight_scales;
  __m256 bias;
  bool has_bias;

  void Store(__m256i sum, int32_t zero_point, float row_scale, float* y) const {
    const __m256i zero = _mm256_mullo_epi32(column_sums, _mm256_set1_epi32(zero_point));
    const __m256 scale = _mm256_mul_ps(_mm256_set1_ps(row_scale), weight_scales);
    __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(sum, zero)), scale);
    if (has_bias) value = _mm256_add_ps(value, bias);
    _mm256_maskstore_ps(y, mask, value);
  }
};

// Rows [i, i + Rows) of the block times the column tile that starts at column j.
template <int Rows>
void MultiplyTile(const Int8Block& block, const int16_t* wide, int64_t i, int64_t j) {
  const int64_t groups = block.groups();
  const int64_t depth = groups * kInt8Group;
  const int16_t* rows = wide + i * depth;
  const uint8_t* weights = block.weights + j * depth;
  __m256i sums[Rows][kColumnVectors];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  for (int64_t group = 0; group < groups; ++group) {
    __m256i w[kColumnVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kColumnVectors; ++v) {
      w[v] =
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 16 * v)));
    }
    _mm_prefetch(reinterpret_cast<const char*>(weights + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      int64_t four;
      __builtin_memcpy(&four, rows + r * depth, sizeof(four));
      const __m256i row = _mm256_set1_epi64x(four);
#pragma GCC unroll 2
      for (int v = 0; v < kColumnVectors; ++v) {
        sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(w[v], row));
        // Keeps the order, one row after the other: GCC 12 runs out of registers with its own.
        asm volatile("" : "+x"(sums[r][v]));
      }
    }
    rows += kInt8Group;
    weights += kGroupBytes;
  }
  const __m256i mask = FirstLanes(block.n - j);
  const Epilogue epilogue{.mask = mask,
                          .column_sums = _mm256_maskload_epi32(block.column_sums + j, mask),
                          .weight_scales = _mm256_maskload_ps(block.weight_scales + j, mask),
                          .bias = block.bias == nullptr ? _mm256_setzero_ps()
                                                        : _mm256_maskload_ps(block.bias + j, mask),
                          .has_bias = block.bias != nullptr};
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    // c0 c1 c4 c5 | c2 c3 c6 c7, then in order.
    const __m256i columns = _mm256_hadd_epi32(sums[r][0], sums[r][1]);
    epilogue.Store(_mm256_permute4x64_epi64(columns, 0xD8),
                   block.zero_points == nullptr ? 0 : block.zero_points[i + r],
                   block.row_scales[i + r], block.y + (i + r) * block.ldy + j);
  }
}

using TileFunction = void (*)(const Int8Block& block, const int16_t* wide, int64_t i, int64_t j);
constexpr TileFunction kTileOfRows[kRowTile + 1] = {nullptr, MultiplyTile<1>, MultiplyTile<2>,
                                                    MultiplyTile<3>, MultiplyTile<4>};

}  // namespace

int32_t SumInt8Avx2(const int8_t* q, int64_t k) {
  const __m256i bytes_of_one = _mm256_set1_epi8(1);
  const __m256i words_of_one = _mm256_set1_epi16(1);
  __m256i sum = _mm256_setzero_si256();
  int64_t l = 0;
  for (; l + 32 <= k; l += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + l));
    const __m256i pairs = _mm256_maddubs_epi16(bytes_of_one, bytes);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, words_of_one));
  }
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
  int32_t total = 0;
  for (const int32_t lane : lanes) total += lane;
  for (; l < k; ++l) total += q[l];
  return total;
}

void MultiplyInt8Avx2(const Int8Block& block) {
  // Two 16-bit numbers a float.
  float* scratch = ThreadScratch(block.m * block.groups() * kInt8Group / 2);
  auto* wide = reinterpret_cast<int16_t*>(scratch);
  WidenRows(block, wide);
  for (int64_t j = 0; j < block.n; j += kColumnTile) {
    for (int64_t i = 0; i < block.m; i += kRowTile) {
      const int64_t left = block.m - i;
      kTileOfRows[left < kRowTile ? left : kRowTile](block, wide, i, j);
    }
  }
}

}  // namespace octavo
