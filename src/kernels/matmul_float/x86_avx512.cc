// Dense matmul for few rows on AVX-512: dot products over the weights as they are stored.
//
// One value of y is the sum of 16 partial sums over k, added up at the end. Up to four rows of x: a
// tile is 4 rows of w times the rows of x, each 16 values of w widened where they are used; with
// one row of x the loop reads four streams of w and does little else.
//
// More rows of x: widening would take as many instructions as a third of the multiplications, so 8
// rows of w are widened once, into L1, for all rows of x, a slab of k at a time. A tile is then 8
// rows of w times 3 of x: 24 multiplications for 11 loads, of which only the 3 of x come from L2.
// Meanwhile the next 8 rows of w, which lie right behind, are asked for from memory.
//
// Either way a partial sum takes the same values in the same order: a row's result does not depend
// on how many rows there are.
#include "kernels/matmul_float/kernels.h"
#include "kernels/scratch.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 16;

// Rows of x up to which w is read as it is stored, in tiles of at most:
constexpr int64_t kFewRows = 8;
constexpr int kRowsOfX = 4;
constexpr int kRowsOfW = 4;

// The tile of more rows, and the values of k that are widened at a time: 24 KiB, half of
// L1. Sums of a tile wait in a buffer where k is longer.
constexpr int kRowsOfXWide = 3;
constexpr int kRowsOfWWide = 8;
constexpr int64_t kSlabValues = 768;
// How far ahead x is asked for: from L2, three lines a step, it would come late.
constexpr int64_t kValuesAhead = 8 * kLanes;

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

// ---- up to kFewRows rows of x -------------------------------------------------------------------

inline float SumOf(__m512 a) {
  const __m512 zero = _mm512_setzero_ps();
  return _mm_cvtss_f32(SumEach(a, zero, zero, zero));
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
      y[i * ldy] = SumOf(sums[i][0]);
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

// ---- more rows of x -----------------------------------------------------------------------------

// Some values of k of kRowsOfWWide rows of w.
template <typename T>
struct Slab {
  const float* wide;  // [kRowsOfWWide][kSlabValues], zeros behind `values` up to whole vectors
  int64_t values;
  bool first;     // of k: sums begin at zero
  bool last;      // sums are complete
  float* sums;    // [m, kRowsOfWWide] vectors
  const T* next;  // where the slab to come lies in w, and from row to row:
  int64_t stride;
};

template <typename T>
void Widen(const T* w, int64_t k, int64_t rows, int64_t values, float* wide) {
  for (int64_t j = 0; j < kRowsOfWWide; ++j) {
    const T* src = w + (j < rows ? j : 0) * k;  // missing rows repeat one that is there
    float* dst = wide + j * kSlabValues;
    int64_t l = 0;
    for (; l + kLanes <= values; l += kLanes) _mm512_store_ps(dst + l, Load(src + l));
    if (l < values) _mm512_store_ps(dst + l, LoadFirst(src + l, FirstLanes(values - l)));
  }
}

// y[i, j] for i < X, j < columns, columns at most kRowsOfWWide. Asks for rows [ahead, ahead +
// Ahead) of the slab to come.
template <typename T, int X, int Ahead>
void WideTile(const Slab<T>& slab, const float* x, int64_t ldx, int64_t ahead, float* waiting,
              float* y, int64_t ldy, int64_t columns) {
  constexpr int W = kRowsOfWWide;
  __m512 sums[X][W] = {};
  if (!slab.first) {
#pragma GCC unroll 3
    for (int i = 0; i < X; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < W; ++j) sums[i][j] = _mm512_load_ps(waiting + (i * W + j) * kLanes);
    }
  }
  const auto step = [&](int64_t l, auto load_x) {
    __m512 row[X];
#pragma GCC unroll 3
    for (int i = 0; i < X; ++i) {
      row[i] = load_x(x + i * ldx + l);
      _mm_prefetch(reinterpret_cast<const char*>(x + i * ldx + l + kValuesAhead), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int j = 0; j < W; ++j) {
      __m512 wide = _mm512_load_ps(slab.wide + j * kSlabValues + l);
      asm("" : "+v"(wide));  // or GCC 12 loads it once a multiplication
#pragma GCC unroll 3
      for (int i = 0; i < X; ++i) sums[i][j] = _mm512_fmadd_ps(row[i], wide, sums[i][j]);
    }
  };
  const T* next = slab.next + ahead * slab.stride;
  int64_t l = 0;
  for (; l + kLanes <= slab.values; l += kLanes) {
    step(l, [](const float* row) { return _mm512_loadu_ps(row); });
#pragma GCC unroll 2
    for (int j = 0; j < Ahead; ++j)
      _mm_prefetch(reinterpret_cast<const char*>(next + j * slab.stride + l), _MM_HINT_T1);
  }
  if (l < slab.values) {
    const __mmask16 lanes = FirstLanes(slab.values - l);
    step(l, [lanes](const float* row) { return _mm512_maskz_loadu_ps(lanes, row); });
  }
#pragma GCC unroll 3
  for (int i = 0; i < X; ++i) {
    if (!slab.last) {
#pragma GCC unroll 8
      for (int j = 0; j < W; ++j) _mm512_store_ps(waiting + (i * W + j) * kLanes, sums[i][j]);
      continue;
    }
#pragma GCC unroll 2
    for (int j = 0; j < W; j += 4) {
      const __m128 four = SumEach(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      _mm_mask_storeu_ps(y + i * ldy + j, columns > j ? FirstLanes(columns - j) & 0xF : 0, four);
    }
  }
}

// All rows of x times a slab.
template <typename T>
void WideStrip(const Slab<T>& slab, const float* x, int64_t ldx, int64_t m, float* y, int64_t ldy,
               int64_t columns) {
  constexpr int64_t kWaiting = kRowsOfWWide * kLanes;
  // The first four tiles ask for the next slab, two rows of it each.
  constexpr int kAhead = 2;
  int64_t i = 0;
  int64_t ahead = 0;
  for (; i + kRowsOfXWide <= m; i += kRowsOfXWide, ahead += kAhead) {
    const auto tile =
        ahead < kRowsOfWWide ? WideTile<T, kRowsOfXWide, kAhead> : WideTile<T, kRowsOfXWide, 0>;
    tile(slab, x + i * ldx, ldx, ahead, slab.sums + i * kWaiting, y + i * ldy, ldy, columns);
  }
  const auto last = m - i == 2 ? WideTile<T, 2, 0> : WideTile<T, 1, 0>;
  if (i < m) last(slab, x + i * ldx, ldx, 0, slab.sums + i * kWaiting, y + i * ldy, ldy, columns);
}

// y[i, j] for i < m, j < columns, columns at most kRowsOfWWide.
template <typename T>
void DotWide(const T* w, int64_t columns, int64_t k, const float* x, int64_t ldx, int64_t m,
             float* y, int64_t ldy, float* scratch) {
  const int64_t slabs = (k + kSlabValues - 1) / kSlabValues;
  const int64_t step = ((k + slabs - 1) / slabs + kLanes - 1) / kLanes * kLanes;
  for (int64_t l = 0; l < k; l += step) {
    const int64_t values = k - l < step ? k - l : step;
    const bool last = l + step >= k;
    Widen(w + l, k, columns, values, scratch);
    const Slab<T> slab{.wide = scratch,
                       .values = values,
                       .first = l == 0,
                       .last = last,
                       .sums = scratch + kRowsOfWWide * kSlabValues,
                       .next = last ? w + kRowsOfWWide * k : w + l + step,
                       .stride = k};
    WideStrip(slab, x + l, ldx, m, y, ldy, columns);
  }
}

template <typename T>
void DotRowsOf(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
               float* y, int64_t ldy) {
  const T* rows = static_cast<const T*>(w);
  int64_t j = 0;
  if (m > kFewRows && k > 0) {
    float* scratch = ThreadScratch(kRowsOfWWide * (kSlabValues + m * kLanes));
    for (; j < n; j += kRowsOfWWide) {
      const int64_t columns = n - j < kRowsOfWWide ? n - j : kRowsOfWWide;
      DotWide(rows + j * k, columns, k, x, ldx, m, y + j, ldy, scratch);
    }
    return;
  }
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
