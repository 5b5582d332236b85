// Dense matmul for many rows on AVX-512: tiles of 8 rows x 48 columns (see panels.h).
#include "kernels/matmul_float/panels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 16;
constexpr int kTileRows = 8;
constexpr int kVectors = 3;  // of kLanes columns: a panel
static_assert(kVectors * kLanes == kPanelColumns);

// Reading `count` (1 to 16) values from `src` as f32, the rest zeros.
struct Bf16 {
  static constexpr int64_t kBytes = 2;
  static __m512 Load(const void* src, __mmask16 lanes) {
    return WidenBf16(_mm256_maskz_loadu_epi16(lanes, src));
  }
};
struct F16 {
  static constexpr int64_t kBytes = 2;
  static __m512 Load(const void* src, __mmask16 lanes) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, src));
  }
};
struct F32 {
  static constexpr int64_t kBytes = 4;
  static __m512 Load(const void* src, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, src); }
};

// Rows and columns change places.
inline void Transpose(__m512 (&r)[16]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  const auto low = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  // Quarter q of r[4 i + c] is column 4 q + c of rows 4 i to 4 i + 3.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = low(t[i], t[i + 2]);
    r[i + 1] = high(t[i], t[i + 2]);
    r[i + 2] = low(t[i + 1], t[i + 3]);
    r[i + 3] = high(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512 even_upper = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88);
    const __m512 odd_upper = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xDD);
    const __m512 even_lower = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
    const __m512 odd_lower = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xDD);
    r[c] = _mm512_shuffle_f32x4(even_upper, even_lower, 0x88);
    r[4 + c] = _mm512_shuffle_f32x4(odd_upper, odd_lower, 0x88);
    r[8 + c] = _mm512_shuffle_f32x4(even_upper, even_lower, 0xDD);
    r[12 + c] = _mm512_shuffle_f32x4(odd_upper, odd_lower, 0xDD);
  }
}

template <typename T>
void Pack(const void* w, int64_t stride, int64_t rows, int64_t k, float* panel) {
  const auto* bytes = static_cast<const char*>(w);
  for (int64_t l = 0; l < k; l += kLanes) {
    const int64_t steps = k - l < kLanes ? k - l : kLanes;
    const __mmask16 lanes = FirstLanes(steps);
    for (int64_t column = 0; column < kPanelColumns; column += kLanes) {
      __m512 square[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        square[i] = column + i < rows
                        ? T::Load(bytes + ((column + i) * stride + l) * T::kBytes, lanes)
                        : _mm512_setzero_ps();
      }
      Transpose(square);
      for (int64_t i = 0; i < steps; ++i)
        _mm512_storeu_ps(panel + (l + i) * kPanelColumns + column, square[i]);
    }
  }
}

// R rows, all columns of the panel.
template <int R>
void Tile(const float* a, int64_t row_stride, int64_t step_stride, const float* panel, int64_t k,
          float* c, const PanelOutput& output) {
  __m512 sums[R][kVectors] = {};
  const float* rows[R];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) rows[i] = a + i * row_stride;
  for (int64_t l = 0, at = 0; l < k; ++l, at += step_stride) {
    __m512 b[kVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j)
      b[j] = _mm512_loadu_ps(panel + l * kPanelColumns + j * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const __m512 value = _mm512_set1_ps(rows[i][at]);
#pragma GCC unroll 3
      for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm512_fmadd_ps(value, b[j], sums[i][j]);
    }
  }
  const __m512 scale = _mm512_set1_ps(output.scale);
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kVectors; ++j) {
      if (output.columns <= j * kLanes) break;
      const __mmask16 lanes = FirstLanes(output.columns - j * kLanes);
      float* out = c + i * output.ldc + j * kLanes;
      const __m512 value =
          output.add ? _mm512_fmadd_ps(scale, sums[i][j], _mm512_maskz_loadu_ps(lanes, out))
                     : sums[i][j];
      _mm512_mask_storeu_ps(out, lanes, value);
    }
  }
}

template <int R>
void LastRows(const PanelRows& a, int64_t first, int64_t m, const float* panel, int64_t k,
              const PanelOutput& output) {
  if constexpr (R > 0) {
    if (m - first != R) return LastRows<R - 1>(a, first, m, panel, k, output);
    Tile<R>(a.data + first * a.row_stride, a.row_stride, a.step_stride, panel, k,
            output.c + first * output.ldc, output);
  }
}

}  // namespace

void PackPanelBf16Avx512(const void* w, int64_t stride, int64_t rows, int64_t k, float* panel) {
  Pack<Bf16>(w, stride, rows, k, panel);
}
void PackPanelF16Avx512(const void* w, int64_t stride, int64_t rows, int64_t k, float* panel) {
  Pack<F16>(w, stride, rows, k, panel);
}
void PackPanelF32Avx512(const void* w, int64_t stride, int64_t rows, int64_t k, float* panel) {
  Pack<F32>(w, stride, rows, k, panel);
}

void MultiplyPanelAvx512(const PanelRows& a, int64_t m, const float* panel, int64_t k,
                         const PanelOutput& output) {
  PanelOutput part = output;
  int64_t l = 0;
  do {  // also for k = 0, which gives zeros
    const int64_t steps = k - l < kPanelSteps ? k - l : kPanelSteps;
    const float* first_step = a.data + l * a.step_stride;
    const float* part_panel = panel + l * kPanelColumns;
    int64_t i = 0;
    for (; i + kTileRows <= m; i += kTileRows) {
      Tile<kTileRows>(first_step + i * a.row_stride, a.row_stride, a.step_stride, part_panel, steps,
                      output.c + i * output.ldc, part);
    }
    LastRows<kTileRows - 1>({first_step, a.row_stride, a.step_stride}, i, m, part_panel, steps,
                            part);
    if (!part.add) part.scale = 1;
    part.add = true;
    l += kPanelSteps;
  } while (l < k);
}

}  // namespace octavo
