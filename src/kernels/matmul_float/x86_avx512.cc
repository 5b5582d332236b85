// Dense matmul for few rows on AVX-512: dot products over the weights as they are stored.
//
// A tile is 4 rows of w times up to 4 rows of x: 16 accumulators of 16 partial sums, which are
// added up at the end. Each 16 values of w are widened once and used by all rows of x. With one row
// of x the loop reads four streams of w and does little else.
#include "kernels/matmul_float/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

constexpr int kRowsOfX = 4;
constexpr int kRowsOfW = 4;
constexpr int64_t kLanes = 16;

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
struct F32 {
  float value;
};

// 16 values, or the first few of them and zeros.
inline __m512 Load(const Bf16* src) {
  return WidenBf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)));
}
inline __m512 LoadFirst(const Bf16* src, __mmask16 lanes) {
  return WidenBf16(_mm256_maskz_loadu_epi16(lanes, src));
}
inline __m512 Load(const F16* src) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)));
}
inline __m512 LoadFirst(const F16* src, __mmask16 lanes) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, src));
}
inline __m512 Load(const F32* src) {
  return _mm512_loadu_ps(src);
}
inline __m512 LoadFirst(const F32* src, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, src);
}

// y[i, j] for i < X, j < W; W is kRowsOfW or 1.
template <typename T, int X, int W>
void DotTile(const T* w, int64_t k, const float* x, int64_t ldx, float* y, int64_t ldy) {
  __m512 sums[X][W] = {};
  const auto step = [&](int64_t l, const __m512(&wide)[W], auto load_x) {
#pragma GCC unroll 4
    for (int i = 0; i < X; ++i) {
      const __m512 row = load_x(x + i * ldx + l);
#pragma GCC unroll 4
      for (int j = 0; j < W; ++j) sums[i][j] = _mm512_fmadd_ps(row, wide[j], sums[i][j]);
    }
  };
  int64_t l = 0;
  __m512 wide[W];
  for (; l + kLanes <= k; l += kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      wide[j] = Load(w + j * k + l);
      // The next tile's rows: the processor does not foresee the jump to them.
      _mm_prefetch(reinterpret_cast<const char*>(w + (W + j) * k + l), _MM_HINT_T1);
    }
    step(l, wide, [](const float* row) { return _mm512_loadu_ps(row); });
  }
  if (l < k) {
    const __mmask16 lanes = FirstLanes(k - l);
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) wide[j] = LoadFirst(w + j * k + l, lanes);
    step(l, wide, [lanes](const float* row) { return _mm512_maskz_loadu_ps(lanes, row); });
  }
#pragma GCC unroll 4
  for (int i = 0; i < X; ++i) {
    if constexpr (W == kRowsOfW) {
      _mm_storeu_ps(y + i * ldy, SumEach(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
    } else {
      y[i * ldy] = _mm512_reduce_add_ps(sums[i][0]);
    }
  }
}

// All rows of x times W rows of w.
template <typename T, int W>
void DotStrip(const T* w, int64_t k, const float* x, int64_t ldx, int64_t m, float* y,
              int64_t ldy) {
  int64_t i = 0;
  for (; i + kRowsOfX <= m; i += kRowsOfX) {
    DotTile<T, kRowsOfX, W>(w, k, x + i * ldx, ldx, y + i * ldy, ldy);
  }
  for (; i + 2 <= m; i += 2) DotTile<T, 2, W>(w, k, x + i * ldx, ldx, y + i * ldy, ldy);
  for (; i < m; ++i) DotTile<T, 1, W>(w, k, x + i * ldx, ldx, y + i * ldy, ldy);
}

template <typename T>
void DotRowsOf(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
               float* y, int64_t ldy) {
  const T* rows = static_cast<const T*>(w);
  int64_t j = 0;
  for (; j + kRowsOfW <= n; j += kRowsOfW) {
    DotStrip<T, kRowsOfW>(rows + j * k, k, x, ldx, m, y + j, ldy);
  }
  for (; j < n; ++j) DotStrip<T, 1>(rows + j * k, k, x, ldx, m, y + j, ldy);
}

}  // namespace

void DotRowsBf16Avx512(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                       float* y, int64_t ldy) {
  DotRowsOf<Bf16>(w, n, k, x, ldx, m, y, ldy);
}
void DotRowsF16Avx512(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                      float* y, int64_t ldy) {
  DotRowsOf<F16>(w, n, k, x, ldx, m, y, ldy);
}
void DotRowsF32Avx512(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                      float* y, int64_t ldy) {
  DotRowsOf<F32>(w, n, k, x, ldx, m, y, ldy);
}

}  // namespace octavo
