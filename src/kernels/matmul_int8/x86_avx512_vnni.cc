// INT8 matmul on AVX-512 VNNI: a tile of 6 rows x 64 columns in 24 accumulators.
//
// vpdpbusd adds four products of an unsigned and a signed byte to each int32 lane. The weights take
// the unsigned slot, as w + 128, which is undone per row by 128 * sum_k q. (Activations in the
// unsigned slot would cost a pass over q.) The sum cannot overflow: 255 * 128 * 65536 < 2^31.
//
// One step of k (a group of four) of a tile, and the accumulators it feeds:
//
//     weights: 4 x 64 bytes      c0..c15      c16..c31     c32..c47     c48..c63
//     rows: 6 x 4 bytes   r0     acc[0][0]    acc[0][1]    acc[0][2]    acc[0][3]
//                         ..     ..
//                         r5     acc[5][0]    acc[5][1]    acc[5][2]    acc[5][3]
//
// 24 vpdpbusd for 4 loads and 6 broadcasts: 12 cycles on two ports, while latency 5 asks for only
// 10 accumulators; 24 + 4 + 1 of 32 registers are in use. Fewer rows (decoding) run the same loop
// on the same layout: then it does nothing but stream the weights, which lie in the order they are
// read.
//
// Caches: weights are taken in slabs of a column tile and up to kSlabGroups groups, which stay in
// L1 while all rows of the block visit them; sums of a tile with several slabs wait in a buffer on
// the stack. The rows come from L2, 24 bytes a step. Meanwhile the next slab, which lies right
// behind, is asked for from memory, in shares: with one row tile all of it, with two half a row
// tile each. So memory never waits for the arithmetic of a few rows, nor the other way round. Of
// many rows the later tiles ask for the rows behind them, which lie a row apart and would not be
// foreseen.
#include "kernels/matmul_int8/kernels.h"
#include "kernels/x86_avx512_vnni_math.h"

namespace octavo {

namespace {

constexpr int kRowTile = 6;
constexpr int64_t kColumnTile = 16 * kColumnVectors;
constexpr int64_t kGroupBytes = kColumnTile * kInt8Group;
constexpr int64_t kGroupsOfLine = 64 / kInt8Group;  // of a row's cache line
// Groups of a slab: with many rows nearly all of L1, so that sums seldom wait; with few rows what
// memory has to send while one slab is worked on.
constexpr int64_t kFewRows = 32;
constexpr int64_t kSlabGroupsOfFewRows = 32;
constexpr int64_t kSlabGroups = 160;

int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Functions that accumulators are handed to: only in line do they stay in registers.
#define OCTAVO_INLINE inline __attribute__((always_inline))

// The epilogue of 16 columns of a row.
struct Epilogue {
  __mmask16 mask;
  __m512i column_sums;
  __m512 weight_scales;
  __m512 bias;
  bool has_bias;

  void Store(__m512i sum, int32_t row_sum, int32_t zero_point, float row_scale, float* y) const {
    const __m512i zero = _mm512_mullo_epi32(column_sums, _mm512_set1_epi32(zero_point));
    const __m512i shift = _mm512_add_epi32(_mm512_set1_epi32(128 * row_sum), zero);
    const __m512i exact = _mm512_sub_epi32(sum, shift);
    const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(row_scale), weight_scales);
    __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(exact), scale);
    if (has_bias) value = _mm512_add_ps(value, bias);
    _mm512_mask_storeu_ps(y, mask, value);
  }
};

// A slab of weights of the column tile that starts at column j, and what goes with it.
struct Slab {
  const uint8_t* weights;
  int64_t k;            // the first value of k
  int64_t groups;       // whole groups
  const int32_t* rest;  // [m]: the group behind them, where k ends in it, or null
  int64_t j;
  bool first;     // of the column tile: sums begin at zero
  bool last;      // sums are complete
  int32_t* sums;  // [m, kColumnTile]
};

template <int Rows>
OCTAVO_INLINE void StoreResults(const Int8Block& block, int64_t i, int64_t j,
                                const Lanes (&sums)[Rows][kColumnVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kColumnVectors; ++v) {
    const int64_t column = j + 16 * v;
    const __mmask16 mask = Lanes16(block.n - column);
    if (mask == 0) break;
    const Epilogue epilogue{
        .mask = mask,
        .column_sums = _mm512_maskz_loadu_epi32(mask, block.column_sums + column),
        .weight_scales = _mm512_maskz_loadu_ps(mask, block.weight_scales + column),
        .bias = block.bias == nullptr ? _mm512_setzero_ps()
                                      : _mm512_maskz_loadu_ps(mask, block.bias + column),
        .has_bias = block.bias != nullptr};
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      epilogue.Store(reinterpret_cast<__m512i>(sums[r][v]), block.row_sums[i + r],
                     block.zero_points == nullptr ? 0 : block.zero_points[i + r],
                     block.row_scales[i + r], block.y + (i + r) * block.ldy + column);
    }
  }
}

template <int Rows>
OCTAVO_INLINE void PrefetchRows(const int8_t* rows, int64_t stride) {
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    _mm_prefetch(reinterpret_cast<const char*>(rows + r * stride), _MM_HINT_T0);
  }
}

// Rows [i, i + Rows) of the block times a slab. Asks for `Lines` cache lines a group of what lies
// at `ahead`.
template <int Rows, int Lines>
void MultiplyTile(const Int8Block& block, int64_t i, const Slab& slab, const uint8_t* ahead) {
  const int8_t* rows = block.rows + i * block.k + slab.k;
  const uint8_t* weights = slab.weights;
  int32_t* waiting = slab.sums + i * kColumnTile;
  Lanes sums[Rows][kColumnVectors] = {};
  if (!slab.first) {
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kColumnVectors; ++v) {
        sums[r][v] = reinterpret_cast<Lanes>(_mm512_load_si512(waiting + r * kColumnTile + 16 * v));
      }
    }
  }
  for (int64_t group = 0; group < slab.groups;) {
    // A row's next cache line begins: so does that of the next row tile.
    if constexpr (Lines == 0) PrefetchRows<Rows>(rows + Rows * block.k, block.k);
    for (const int64_t end = Min(group + kGroupsOfLine, slab.groups); group < end; ++group) {
      MultiplyGroup<Rows>(
          weights, [&](int r) { return LoadFour(rows + r * block.k); }, sums);
#pragma GCC unroll 4
      for (int line = 0; line < Lines; ++line) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead + 64 * line), _MM_HINT_T0);
      }
      rows += kInt8Group;
      weights += kGroupBytes;
      ahead += 64 * Lines;
    }
  }
  if (slab.rest != nullptr) {
    MultiplyGroup<Rows>(
        weights, [&](int r) { return slab.rest[i + r]; }, sums);
  }
  if (slab.last) {
    StoreResults<Rows>(block, i, slab.j, sums);
    return;
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kColumnVectors; ++v) {
      _mm512_store_si512(waiting + r * kColumnTile + 16 * v, reinterpret_cast<__m512i>(sums[r][v]));
    }
  }
}

using TileFunction = void (*)(const Int8Block& block, int64_t i, const Slab& slab,
                              const uint8_t* ahead);

template <int Lines>
constexpr TileFunction kTileOfRows[kRowTile + 1] = {nullptr,
                                                    MultiplyTile<1, Lines>,
                                                    MultiplyTile<2, Lines>,
                                                    MultiplyTile<3, Lines>,
                                                    MultiplyTile<4, Lines>,
                                                    MultiplyTile<5, Lines>,
                                                    MultiplyTile<6, Lines>};

// All rows of the block, a row tile at a time; each asks for its share of the next slab.
void MultiplySlab(const Int8Block& block, const Slab& slab) {
  const int64_t tiles = (block.m + kRowTile - 1) / kRowTile;
  const int64_t lines = tiles == 1 ? 4 : tiles < 4 ? 2 : 1;
  const uint8_t* next = slab.weights + slab.groups * kGroupBytes;
  for (int64_t i = 0; i < block.m; i += kRowTile) {
    const int64_t rows = Min(kRowTile, block.m - i);
    const int64_t part = i / kRowTile;
    const uint8_t* ahead = next + part * slab.groups * 64 * lines;
    if (part * lines >= 4) {
      kTileOfRows<0>[rows](block, i, slab, ahead);
    } else if (lines == 4) {
      kTileOfRows<4>[rows](block, i, slab, ahead);
    } else if (lines == 2) {
      kTileOfRows<2>[rows](block, i, slab, ahead);
    } else {
      kTileOfRows<1>[rows](block, i, slab, ahead);
    }
  }
}

}  // namespace

int32_t SumInt8Avx512Vnni(const int8_t* q, int64_t k) {
  const __m512i ones = _mm512_set1_epi8(1);
  Lanes sum = {};
  for (int64_t l = 0; l < k; l += 64) {
    const int64_t left = k - l;
    const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    sum = DotAccumulate(sum, ones, _mm512_maskz_loadu_epi8(mask, q + l));
  }
  return _mm512_reduce_add_epi32(reinterpret_cast<__m512i>(sum));
}

void MultiplyInt8Avx512Vnni(const Int8Block& block) {
  alignas(64) int32_t sums[kInt8BlockRows * kColumnTile];
  int32_t rest[kInt8BlockRows];
  const int64_t num_rest = block.k % kInt8Group;
  for (int64_t i = 0; i < block.m; ++i) {
    int32_t four = 0;
    __builtin_memcpy(&four, block.rows + (i + 1) * block.k - num_rest,
                     static_cast<size_t>(num_rest));
    rest[i] = four;
  }
  const int64_t groups = block.groups();
  // Slabs of about equal size.
  const int64_t most = block.m <= kFewRows ? kSlabGroupsOfFewRows : kSlabGroups;
  const int64_t slabs = (groups + most - 1) / most;
  const int64_t step = (groups + slabs - 1) / slabs;
  for (int64_t j = 0; j < block.n; j += kColumnTile) {
    const uint8_t* weights = block.weights + j * groups * kInt8Group;
    for (int64_t group = 0; group < groups; group += step) {
      const int64_t k = group * kInt8Group;
      const int64_t values = Min(step * kInt8Group, block.k - k);
      MultiplySlab(block, {.weights = weights + group * kGroupBytes,
                           .k = k,
                           .groups = values / kInt8Group,
                           .rest = values % kInt8Group == 0 ? nullptr : rest,
                           .j = j,
                           .first = group == 0,
                           .last = group + step >= groups,
                           .sums = sums});
    }
  }
}

}  // namespace octavo
