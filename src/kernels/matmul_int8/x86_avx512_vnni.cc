// INT8 matmul on AVX-512 VNNI: a tile of 6 rows x 64 columns in 24 accumulators.
//
// vpdpbusd adds four products of an unsigned and a signed byte to each int32 lane. The weights take
// the unsigned slot, as w + 128, which is undone per row by 128 * sum_k q, a number that is there
// once the row is packed and that asymmetric weights will need as well. (Activations in the
// unsigned slot would cost a sum per column, stored with the weights, and a pass over q.) The sum
// cannot overflow: 255 * 128 * 65536 < 2^31.
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
// Caches: a column tile is 64 k bytes, e.g. 36 KiB (k = 576) to 896 KiB (k = 14336). It stays in L2
// while the block's rows visit it, 256 bytes each 12 cycles, a third of what L2 delivers; the six
// rows being multiplied (24 bytes a step) come from L1.
#include <immintrin.h>

#include "kernels/matmul_int8/kernels.h"

namespace octavo {

namespace {

constexpr int kRowTile = 6;
constexpr int kColumnVectors = 4;
constexpr int64_t kColumnTile = 16 * kColumnVectors;
constexpr int64_t kGroupBytes = kColumnTile * kInt8Group;

// How far ahead of their use weights are asked for: about 2 KiB covers the latency of L2 at full
// speed and keeps several lines from memory in flight at few rows.
constexpr int64_t kPrefetchBytes = 2048;

// GCC 12 spills accumulators of type __m512i that are fed to the intrinsic (half speed); it keeps
// those of the builtin's own type. Clang needs the intrinsic.
#ifdef __clang__
using Lanes = __m512i;
inline Lanes DotAccumulate(Lanes sum, __m512i weights, __m512i row) {
  return _mm512_dpbusd_epi32(sum, weights, row);
}
#else
using Lanes = __v16si;
inline Lanes DotAccumulate(Lanes sum, __m512i weights, __m512i row) {
  return __builtin_ia32_vpdpbusd_v16si(sum, reinterpret_cast<__v16si>(weights),
                                       reinterpret_cast<__v16si>(row));
}
#endif

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

inline int32_t LoadFour(const int8_t* bytes) {
  int32_t four;
  __builtin_memcpy(&four, bytes, sizeof(four));
  return four;
}

// Rows [i, i + Rows) of the block times the column tile that starts at column j.
template <int Rows>
void MultiplyTile(const Int8Block& block, int64_t i, int64_t j) {
  const int8_t* rows = block.rows + i * block.groups * kInt8Group;
  const uint8_t* weights = block.weights + j * block.groups * kInt8Group;
  Lanes sums[Rows][kColumnVectors] = {};
  for (int64_t group = 0; group < block.groups; ++group) {
    __m512i w[kColumnVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kColumnVectors; ++v) {
      w[v] = _mm512_loadu_si512(weights + 64 * v);
      _mm_prefetch(reinterpret_cast<const char*>(weights + kPrefetchBytes + 64 * v), _MM_HINT_T0);
    }
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m512i row = _mm512_set1_epi32(LoadFour(rows + kInt8Group * r));
#pragma GCC unroll 4
      for (int v = 0; v < kColumnVectors; ++v) sums[r][v] = DotAccumulate(sums[r][v], w[v], row);
    }
    rows += kInt8Group * Rows;
    weights += kGroupBytes;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kColumnVectors; ++v) {
    const int64_t column = j + 16 * v;
    const int64_t left = block.n - column;
    if (left <= 0) break;
    const auto mask = static_cast<__mmask16>(left >= 16 ? 0xFFFF : (1 << left) - 1);
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

using TileFunction = void (*)(const Int8Block& block, int64_t i, int64_t j);
constexpr TileFunction kTileOfRows[kRowTile + 1] = {
    nullptr,         MultiplyTile<1>, MultiplyTile<2>, MultiplyTile<3>,
    MultiplyTile<4>, MultiplyTile<5>, MultiplyTile<6>};

}  // namespace

void MultiplyInt8Avx512Vnni(const Int8Block& block) {
  for (int64_t j = 0; j < block.n; j += kColumnTile) {
    for (int64_t i = 0; i < block.m; i += kRowTile) {
      const int64_t left = block.m - i;
      kTileOfRows[left < kRowTile ? left : kRowTile](block, i, j);
    }
  }
}

}  // namespace octavo
