// INT4 matmul on AVX-512 VNNI: the INT8 kernel's tile of 6 rows x 64 columns (see
// matmul_int8/x86_avx512_vnni.cc), a part of k at a time.
//
// A part's weights are unpacked to bytes 0..15, in L1, once for all rows of the block; vpdpbusd
// takes them as its unsigned operand. What each is too large by, 8 or more with a zero point, times
// the sum of the row is where sums begin. They are exact; each part's is scaled and added to those
// of the parts before, which wait in a buffer on the stack: rows of y may lie in the same lines of
// L1.
#include "kernels/matmul_int4/slab.h"
#include "kernels/x86_avx512_vnni_math.h"

namespace octavo {

namespace {

constexpr int kRowTile = 6;
constexpr int64_t kColumnTile = 16 * kColumnVectors;
constexpr int64_t kBytesOfStep = kColumnTile * kInt4Step / 2;
constexpr int64_t kBytesOfGroup = kColumnTile * kInt4Group;  // unpacked

// How far ahead of their use weights are asked for.
constexpr int64_t kPrefetchBytes = 4096;

// `steps` steps to two groups of bytes each.
void Unpack(const uint8_t* packed, int64_t steps, uint8_t* bytes) {
  const __m512i low = _mm512_set1_epi8(15);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < kColumnVectors; ++v) {
      const uint8_t* src = packed + step * kBytesOfStep + 64 * v;
      _mm_prefetch(reinterpret_cast<const char*>(src + kPrefetchBytes), _MM_HINT_T0);
      const __m512i both = _mm512_loadu_si512(src);
      uint8_t* dst = bytes + 2 * step * kBytesOfGroup + 64 * v;
      _mm512_store_si512(dst, _mm512_and_si512(both, low));
      _mm512_store_si512(dst + kBytesOfGroup, _mm512_and_si512(_mm512_srli_epi32(both, 4), low));
    }
  }
}

// The sums of rows [i, i + Rows) begin where what weights are too large by comes off.
template <int Rows>
inline __attribute__((always_inline)) void Begin(const Int4Block& block, int64_t i,
                                                 const Slab& slab,
                                                 Lanes (&sums)[Rows][kColumnVectors]) {
  const int32_t* row_sums = block.row_sums + i * slab.num_parts + slab.index;
  if (block.offsets == nullptr) {
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m512i shift = _mm512_set1_epi32(-8 * row_sums[r * slab.num_parts]);
#pragma GCC unroll 4
      for (int v = 0; v < kColumnVectors; ++v) sums[r][v] = reinterpret_cast<Lanes>(shift);
    }
    return;
  }
  // Products of 16 bits suffice: a sum is of at most 256 bytes, an offset of 8 bits. Behind the
  // sum's 16 bits are zeros.
  __m512i negative[kColumnVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kColumnVectors; ++v) {
    const int64_t column = slab.j + 16 * v;
    const __m512i offsets = _mm512_maskz_loadu_epi32(
        Lanes16(block.n - column), block.offsets + slab.part.group * block.scales_stride + column);
    negative[v] = _mm512_sub_epi32(_mm512_setzero_si512(), offsets);
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    const __m512i row_sum = _mm512_set1_epi32(row_sums[r * slab.num_parts] & 0xFFFF);
#pragma GCC unroll 4
    for (int v = 0; v < kColumnVectors; ++v)
      sums[r][v] = reinterpret_cast<Lanes>(_mm512_madd_epi16(negative[v], row_sum));
  }
}

// y of 16 columns, complete but for the row's scale and the bias.
inline void Finish(const Int4Block& block, const float* row_scale, int64_t column, __mmask16 mask,
                   __m512 value, float* y) {
  if (!block.scales_of_groups) value = _mm512_mul_ps(value, _mm512_set1_ps(row_scale[0]));
  if (block.bias != nullptr)
    value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, block.bias + column));
  _mm512_mask_storeu_ps(y + column, mask, value);
}

// Scales the sums of a part that is neither the first nor the last, and adds them to those of the
// parts before: what most parts of small groups need, without a question for each vector.
template <int Rows>
inline __attribute__((always_inline)) void Continue(const Int4Block& block, int64_t i,
                                                    const Slab& slab,
                                                    const Lanes (&sums)[Rows][kColumnVectors]) {
  const float* scales = block.weight_scales + slab.part.group * block.scales_stride + slab.j;
  float* waiting = slab.sums + i * kColumnTile;
#pragma GCC unroll 4
  for (int v = 0; v < kColumnVectors; ++v) {
    const __m512 scale = _mm512_maskz_loadu_ps(Lanes16(block.n - slab.j - 16 * v), scales + 16 * v);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      float* before = waiting + r * kColumnTile + 16 * v;
      const __m512 sum = _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(sums[r][v]));
      _mm512_store_ps(before, _mm512_add_ps(_mm512_load_ps(before), _mm512_mul_ps(sum, scale)));
    }
  }
}

// Scales the sums and adds them to those of the parts before.
template <int Rows>
inline __attribute__((always_inline)) void End(const Int4Block& block, int64_t i, const Slab& slab,
                                               const Lanes (&sums)[Rows][kColumnVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kColumnVectors; ++v) {
    const int64_t column = slab.j + 16 * v;
    const __mmask16 mask = Lanes16(block.n - column);
    const __m512 scales = _mm512_maskz_loadu_ps(
        mask, block.weight_scales + slab.part.group * block.scales_stride + column);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const float* row_scales = block.row_scales + (i + r) * block.row_scales_stride;
      __m512 scale = scales;
      if (block.scales_of_groups)
        scale = _mm512_mul_ps(scale, _mm512_set1_ps(row_scales[slab.part.group]));
      float* waiting = slab.sums + (i + r) * kColumnTile + 16 * v;
      const __m512 sum = _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(sums[r][v]));
      __m512 value = _mm512_mul_ps(sum, scale);
      if (slab.index != 0) value = _mm512_add_ps(_mm512_load_ps(waiting), value);
      if (slab.last)
        Finish(block, row_scales, column, mask, value, block.y + (i + r) * block.ldy);
      else
        _mm512_store_ps(waiting, value);
    }
  }
}

template <int Rows>
void MultiplyTile(const Int4Block& block, int64_t i, const Slab& slab) {
  const int64_t k = block.parts.k;
  const int8_t* rows = block.rows + i * k + slab.part.begin;
  const uint8_t* weights = slab.weights;
  Lanes sums[Rows][kColumnVectors];
  Begin<Rows>(block, i, slab, sums);
  const int64_t groups = (slab.part.end - slab.part.begin) / kInt4Group;
  for (int64_t group = 0; group < groups; ++group) {
    MultiplyGroup<Rows>(
        weights, [&](int r) { return LoadFour(rows + r * k); }, sums);
    rows += kInt4Group;
    weights += kBytesOfGroup;
  }
  if (slab.rest != nullptr) {
    MultiplyGroup<Rows>(
        weights, [&](int r) { return slab.rest[i + r]; }, sums);
  }
  if (slab.index != 0 && !slab.last && !block.scales_of_groups)
    return Continue<Rows>(block, i, slab, sums);
  End<Rows>(block, i, slab, sums);
}

using TileFunction = void (*)(const Int4Block& block, int64_t i, const Slab& slab);
constexpr TileFunction kTileOfRows[kRowTile + 1] = {
    nullptr,         MultiplyTile<1>, MultiplyTile<2>, MultiplyTile<3>,
    MultiplyTile<4>, MultiplyTile<5>, MultiplyTile<6>};

}  // namespace

void MultiplyInt4Avx512Vnni(const Int4Block& block) {
  ForEachSlab<kColumnTile, kRowTile>(block, Unpack, [&](int64_t i, int64_t rows, const Slab& slab) {
    kTileOfRows[rows](block, i, slab);
  });
}

}  // namespace octavo
