// INT4 matmul on AVX2: a tile of 4 rows x 16 columns, a part of k at a time, unpacked as on
// AVX-512.
//
// vpmaddubsw adds two products of an unsigned and a signed byte, saturating at 16 bits: of a code
// up to 15 and a byte the sum is at most 2 * 15 * 128, so none saturates.
#include "kernels/matmul_int4/slab.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

namespace {

constexpr int kRowTile = 4;
constexpr int kColumnVectors = 2;
constexpr int64_t kColumnTile = 8 * kColumnVectors;
constexpr int64_t kBytesOfStep = kColumnTile * kInt4Step / 2;
constexpr int64_t kBytesOfGroup = kColumnTile * kInt4Group;  // unpacked

// How far ahead of their use weights are asked for.
constexpr int64_t kPrefetchBytes = 1024;

inline __m256i Load(const uint8_t* bytes) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes));
}

// `steps` steps to two groups of bytes each.
void Unpack(const uint8_t* packed, int64_t steps, uint8_t* bytes) {
  const __m256i low = _mm256_set1_epi8(15);
  const auto store = [](uint8_t* dst, __m256i value) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(dst), value);
  };
  for (int64_t step = 0; step < steps; ++step) {
    const uint8_t* src = packed + step * kBytesOfStep;
    _mm_prefetch(reinterpret_cast<const char*>(src + kPrefetchBytes), _MM_HINT_T0);
#pragma GCC unroll 2
    for (int64_t v = 0; v < kColumnVectors; ++v) {
      const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + 32 * v));
      uint8_t* dst = bytes + 2 * step * kBytesOfGroup + 32 * v;
      store(dst, _mm256_and_si256(both, low));
      store(dst + kBytesOfGroup, _mm256_and_si256(_mm256_srli_epi32(both, 4), low));
    }
  }
}

template <int Rows>
inline __attribute__((always_inline)) void MultiplyGroup(const uint8_t* weights,
                                                         const int32_t (&four)[Rows],
                                                         __m256i (&sums)[Rows][kColumnVectors]) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i w[kColumnVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kColumnVectors; ++v) w[v] = Load(weights + 32 * v);
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    const __m256i row = _mm256_set1_epi32(four[r]);
#pragma GCC unroll 2
    for (int v = 0; v < kColumnVectors; ++v) {
      const __m256i pairs = _mm256_maddubs_epi16(w[v], row);
      sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(pairs, ones));
    }
  }
}

// Scales the sums of 8 columns of row i and adds them to those of the parts before.
inline void StoreResult(const Int4Block& block, int64_t i, int64_t column, const Slab& slab,
                        __m256i sum) {
  const __m256i mask = FirstLanes(block.n - column);
  const int64_t at = slab.part.group * block.scales_stride + column;
  const __m256i row_sum = _mm256_set1_epi32(block.row_sums[i * slab.num_parts + slab.index]);
  const __m256i offsets = block.offsets == nullptr
                              ? _mm256_set1_epi32(8)
                              : _mm256_maskload_epi32(block.offsets + at, mask);
  const __m256i exact = _mm256_sub_epi32(sum, _mm256_mullo_epi32(row_sum, offsets));
  const float* row_scales = block.row_scales + i * block.row_scales_stride;
  __m256 scale = _mm256_maskload_ps(block.weight_scales + at, mask);
  if (block.scales_of_groups)
    scale = _mm256_mul_ps(scale, _mm256_set1_ps(row_scales[slab.part.group]));
  float* waiting = slab.sums + i * kColumnTile + column - slab.j;
  __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(exact), scale);
  if (slab.index != 0) value = _mm256_add_ps(_mm256_load_ps(waiting), value);
  if (!slab.last) return _mm256_store_ps(waiting, value);
  if (!block.scales_of_groups) value = _mm256_mul_ps(value, _mm256_set1_ps(row_scales[0]));
  if (block.bias != nullptr)
    value = _mm256_add_ps(value, _mm256_maskload_ps(block.bias + column, mask));
  _mm256_maskstore_ps(block.y + i * block.ldy + column, mask, value);
}

template <int Rows>
void MultiplyTile(const Int4Block& block, int64_t i, const Slab& slab) {
  const int64_t k = block.parts.k;
  const int8_t* rows = block.rows + i * k + slab.part.begin;
  const uint8_t* weights = slab.weights;
  __m256i sums[Rows][kColumnVectors] = {};
  int32_t four[Rows];
  const int64_t groups = (slab.part.end - slab.part.begin) / kInt4Group;
  for (int64_t group = 0; group < groups; ++group) {
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) __builtin_memcpy(four + r, rows + r * k, sizeof(four[r]));
    MultiplyGroup<Rows>(weights, four, sums);
    rows += kInt4Group;
    weights += kBytesOfGroup;
  }
  if (slab.rest != nullptr) {
    for (int r = 0; r < Rows; ++r) four[r] = slab.rest[i + r];
    MultiplyGroup<Rows>(weights, four, sums);
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kColumnVectors; ++v) {
      if (slab.j + 8 * v < block.n) StoreResult(block, i + r, slab.j + 8 * v, slab, sums[r][v]);
    }
  }
}

using TileFunction = void (*)(const Int4Block& block, int64_t i, const Slab& slab);
constexpr TileFunction kTileOfRows[kRowTile + 1] = {nullptr, MultiplyTile<1>, MultiplyTile<2>,
                                                    MultiplyTile<3>, MultiplyTile<4>};

}  // namespace

void MultiplyInt4Avx2(const Int4Block& block) {
  ForEachSlab<kColumnTile, kRowTile>(block, Unpack, [&](int64_t i, int64_t rows, const Slab& slab) {
    kTileOfRows[rows](block, i, slab);
  });
}

}  // namespace octavo
