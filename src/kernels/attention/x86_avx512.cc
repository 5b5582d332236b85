// Attention on AVX-512: query vectors against blocks of 64 keys with an online softmax
// (FlashAttention-2, Dao 2023), in f32.
//
// A block of keys is packed once for all query vectors of the tile, both products then run through
// one register-tiled loop C[M, N] (+)= A[M, K] B[K, N] whose B rows are whole vectors:
//
//   S [M, 64]   = Q [M, D]  K^T [D, 64]     K^T: the block's keys, transposed while widened to f32
//   P           = exp(S - maximum), masked by position
//   O [M, D']   = O * exp(old maximum - maximum) + P [M, 64]  V [64, D']
//
// D' is D rounded up to a vector; Q is scaled when it is gathered. Missing keys have zeros in K^T
// and V and probability zero. For D = 64, K^T and V are 16 KiB each and stay in L1; S, Q and O of
// 96 vectors are 24 KiB each and stream from L2, each value feeding four FMAs.
#include "kernels/attention/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 16;
constexpr int64_t kBlockKeys = 64;
constexpr int kTileRows = 6;
constexpr int kTileVectors = 4;

int64_t RoundUp(int64_t a) {
  return (a + kLanes - 1) / kLanes * kLanes;
}

int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

int64_t Max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// The parts of a tile's scratch, each aligned to a cache line.
struct Scratch {
  Scratch(float* memory, int64_t m, int64_t dim)
      : queries(memory),
        keys(queries + RoundUp(m * dim)),
        values(keys + kBlockKeys * dim),
        scores(values + kBlockKeys * RoundUp(dim)),
        sums(scores + m * kBlockKeys) {}
  static int64_t Floats(int64_t m, int64_t dim) {
    return RoundUp(m * dim) + kBlockKeys * (dim + RoundUp(dim)) + m * kBlockKeys + m * RoundUp(dim);
  }

  float* queries;  // [M, D]
  float* keys;     // [D, 64]
  float* values;   // [64, D']
  float* scores;   // [M, 64]
  float* sums;     // [M, D']
};

struct Bf16 {
  uint16_t bits;
};

// Elements of a token, as many as there are lanes, and zeros.
inline __m512 LoadElements(const Bf16* src, __mmask16 lanes) {
  return WidenBf16(_mm256_maskz_loadu_epi16(lanes, src));
}
inline __m512 LoadElements(const float* src, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, src);
}

// Transposes 16 x 16 floats: in four rounds, neighbours at distance 1, 2, 4 and 8 swap halves.
inline void Transpose(__m512 (&rows)[16]) {
  __m512 a[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  __m512 b[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xEE);
    b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xDD);
    a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xDD);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
    rows[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
    rows[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xDD);
    rows[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xDD);
  }
}

// `count` keys transposed to [D, 64], zeros behind them up to a whole vector. Asks
// for the next block meanwhile: tokens lie far apart, so the processor does not foresee them.
template <typename T>
void PackKeys(const AttentionTile& tile, const T* keys, int64_t count, float* dst) {
  const int64_t stride = tile.token_stride;
  for (int64_t key = 0; key < count; key += kLanes) {
    const int64_t present = Min(kLanes, count - key);
    for (int64_t d = 0; d < tile.head_dim; d += kLanes) {
      const __mmask16 lanes = FirstLanes(tile.head_dim - d);
      const T* src = keys + key * stride + d;
      const T* next = src + kBlockKeys * stride;
      __m512 rows[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        rows[i] = LoadElements(src, i < present ? lanes : __mmask16{0});
        _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
        if (i + 1 < present) src += stride;
        next += stride;
      }
      Transpose(rows);
      const int64_t depth = Min(kLanes, tile.head_dim - d);
      for (int64_t i = 0; i < depth; ++i) {
        _mm512_store_ps(dst + (d + i) * kBlockKeys + key, rows[i]);
      }
    }
  }
}

// `count` values widened to [count, D'].
template <typename T>
void PackValues(const AttentionTile& tile, const T* values, int64_t count, float* dst) {
  const int64_t width = RoundUp(tile.head_dim);
  for (int64_t key = 0; key < count; ++key) {
    const T* src = values + key * tile.token_stride;
    for (int64_t d = 0; d < width; d += kLanes) {
      _mm512_store_ps(dst + key * width + d, LoadElements(src + d, FirstLanes(tile.head_dim - d)));
      _mm_prefetch(reinterpret_cast<const char*>(src + kBlockKeys * tile.token_stride + d),
                   _MM_HINT_T1);
    }
  }
}

// Keys and values [first, first + count) of T's into scratch.
template <typename T>
void PackBlock(const AttentionTile& tile, int64_t first, int64_t count, const Scratch& scratch) {
  const int64_t offset = first * tile.token_stride;
  PackKeys(tile, static_cast<const T*>(tile.keys) + offset, count, scratch.keys);
  PackValues(tile, static_cast<const T*>(tile.values) + offset, count, scratch.values);
}

// Rows x (16 * Vectors) of C; C is read first when `accumulate` is set.
template <int Rows, int Vectors>
void MultiplyTile(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t k,
                  bool accumulate, float* c, int64_t ldc) {
  __m512 sums[Rows][Vectors] = {};
  if (accumulate) {
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_load_ps(c + r * ldc + kLanes * v);
    }
  }
  for (int64_t l = 0; l < k; ++l) {
    __m512 row[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) row[v] = _mm512_load_ps(b + l * ldb + kLanes * v);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const __m512 factor = _mm512_set1_ps(a[r * lda + l]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[r][v] = _mm512_fmadd_ps(factor, row[v], sums[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) _mm512_store_ps(c + r * ldc + kLanes * v, sums[r][v]);
  }
}

template <int Vectors>
void MultiplyStrip(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t m, int64_t k,
                   bool accumulate, float* c, int64_t ldc) {
  constexpr decltype(&MultiplyTile<1, Vectors>) kTileOfRows[kTileRows + 1] = {
      nullptr,
      MultiplyTile<1, Vectors>,
      MultiplyTile<2, Vectors>,
      MultiplyTile<3, Vectors>,
      MultiplyTile<4, Vectors>,
      MultiplyTile<5, Vectors>,
      MultiplyTile<6, Vectors>};
  for (int64_t i = 0; i < m; i += kTileRows) {
    kTileOfRows[Min(m - i, kTileRows)](a + i * lda, lda, b, ldb, k, accumulate, c + i * ldc, ldc);
  }
}

// C [m, n] (+)= A [m, k] B [k, n]; rows of B and C aligned, n a multiple of 16.
void Multiply(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t m, int64_t n,
              int64_t k, bool accumulate, float* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + kLanes * kTileVectors <= n; j += kLanes * kTileVectors) {
    MultiplyStrip<kTileVectors>(a, lda, b + j, ldb, m, k, accumulate, c + j, ldc);
  }
  for (; j < n; j += kLanes) {
    MultiplyStrip<1>(a, lda, b + j, ldb, m, k, accumulate, c + j, ldc);
  }
}

void GatherQueries(const AttentionTile& tile, float* dst) {
  const __m512 scale = _mm512_set1_ps(tile.scale);
  const int64_t dim = tile.heads * tile.head_dim;  // the heads of a row are neighbours
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t d = 0; d < dim; d += kLanes) {
      const __mmask16 lanes = FirstLanes(dim - d);
      const __m512 value = _mm512_maskz_loadu_ps(lanes, tile.q + row * tile.ldq + d);
      _mm512_mask_storeu_ps(dst + row * dim + d, lanes, _mm512_mul_ps(value, scale));
    }
  }
}

// Lanes 0 .. count - 1, for any count.
inline __mmask16 LanesBelow(int64_t count) {
  return count <= 0 ? __mmask16{0} : FirstLanes(count);
}

// Turns scores [begin, end) of 64 into probabilities relative to the new maximum, the others into
// zero, and brings denominator and sums [width] along. begin < end.
void Softmax(int64_t begin, int64_t end, float* scores, float* maximum, float* denominator,
             float* sums, int64_t width) {
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 s[kTileVectors];
  __m512 largest = _mm512_set1_ps(*maximum);
#pragma GCC unroll 4
  for (int v = 0; v < kTileVectors; ++v) {
    const __mmask16 before = LanesBelow(begin - kLanes * v);
    const __mmask16 lanes = LanesBelow(end - kLanes * v) & static_cast<__mmask16>(~before);
    s[v] = _mm512_mask_load_ps(lowest, lanes, scores + kLanes * v);
    largest = _mm512_max_ps(largest, s[v]);
  }
  const float new_maximum = _mm512_reduce_max_ps(largest);
  const __m512 base = _mm512_set1_ps(new_maximum);
  __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (int v = 0; v < kTileVectors; ++v) {
    s[v] = Exp(_mm512_sub_ps(s[v], base));
    sum = _mm512_add_ps(sum, s[v]);
    _mm512_store_ps(scores + kLanes * v, s[v]);
  }
  if (new_maximum != *maximum) {
    const __m512 shrink = Exp(_mm512_sub_ps(_mm512_set1_ps(*maximum), base));
    for (int64_t d = 0; d < width; d += kLanes) {
      _mm512_store_ps(sums + d, _mm512_mul_ps(_mm512_load_ps(sums + d), shrink));
    }
    *denominator *= _mm512_cvtss_f32(shrink);
    *maximum = new_maximum;
  }
  *denominator += _mm512_reduce_add_ps(sum);
}

}  // namespace

int64_t AttendScratchAvx512(int64_t vectors, int64_t head_dim) {
  return Scratch::Floats(vectors, head_dim);
}

void AttendAvx512(const AttentionTile& tile) {
  const int64_t m = tile.rows * tile.heads;
  const int64_t dim = tile.head_dim;
  const int64_t width = RoundUp(dim);
  const Scratch scratch(tile.scratch, m, dim);
  GatherQueries(tile, scratch.queries);
  for (int64_t i = 0; i < m; ++i) {
    tile.maximum[i] = -__builtin_inff();
    tile.denominator[i] = 0;
  }
  for (int64_t i = 0; i < m * width; ++i) scratch.sums[i] = 0;

  for (int64_t key = tile.key_begin; key < tile.key_end; key += kBlockKeys) {
    const int64_t count = Min(kBlockKeys, tile.key_end - key);
    // Rows before the first see no key of the block (the triangle's upper part), nor do those from
    // the end on (their windows begin behind it).
    const int64_t first_row = Max(0, key - tile.first_position);
    const int64_t end_row = Min(tile.rows, key + count - 1 + tile.window - tile.first_position);
    if (first_row >= end_row) continue;
    const int64_t i = first_row * tile.heads;
    const int64_t end = end_row * tile.heads;
    (tile.bf16 ? PackBlock<Bf16> : PackBlock<float>)(tile, key, count, scratch);
    Multiply(scratch.queries + i * dim, dim, scratch.keys, kBlockKeys, end - i, RoundUp(count), dim,
             false, scratch.scores + i * kBlockKeys, kBlockKeys);
    for (int64_t v = i; v < end; ++v) {
      const int64_t own = tile.first_position + v / tile.heads - key;  // the row's own key
      Softmax(Max(0, own - tile.window + 1), Min(count, own + 1), scratch.scores + v * kBlockKeys,
              tile.maximum + v, tile.denominator + v, scratch.sums + v * width, width);
    }
    Multiply(scratch.scores + i * kBlockKeys, kBlockKeys, scratch.values, width, end - i, width,
             count, true, scratch.sums + i * width, width);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t d = 0; d < dim; d += kLanes) {
      _mm512_mask_storeu_ps(tile.numerator + i * dim + d, FirstLanes(dim - d),
                            _mm512_load_ps(scratch.sums + i * width + d));
    }
  }
}

}  // namespace octavo
