// Coded weights on AVX-512: decoding, for panels.
#include "kernels/matmul_coded/kernels.h"
#include "kernels/matmul_coded/x86_avx512_scales.h"

namespace octavo {

namespace {

// out[0, count) = (values - zero point) * scale of columns [begin, begin + count), 16 at a time;
// groups are multiples of 16. load(column, lanes) gives the values.
template <typename Load>
inline void Decode(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out,
                   const Load& load) {
  const int64_t row_units = row / w.unit_rows * w.scale_columns;
  int64_t unit_end = begin;
  __m512 scale = _mm512_setzero_ps();
  __m512 zero_point = _mm512_setzero_ps();
  for (int64_t column = begin; column < begin + count; column += kLanes) {
    if (column == unit_end) {
      const int64_t in_row = column / w.unit_columns;
      unit_end = w.unit_columns >= w.k ? w.k : (in_row + 1) * w.unit_columns;
      scale = _mm512_set1_ps(ScaleAt(w, row_units + in_row));
      if (w.zero_points != nullptr)
        zero_point = _mm512_set1_ps(static_cast<float>(w.zero_points[row_units + in_row]));
    }
    const int64_t left = begin + count - column;
    const __m512 value = load(column, left);
    _mm512_mask_storeu_ps(out + column - begin, FirstLanes(left),
                          _mm512_mul_ps(_mm512_sub_ps(value, zero_point), scale));
  }
}

}  // namespace

void DecodeNibblesAvx512(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count,
                         float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  const __m512 table = _mm512_loadu_ps(w.table.data());
  const __m512i shifts =
      _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  const __m512i words = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const __mmask16 bytes = FirstLanes((left < kLanes ? left + 1 : kLanes) / 2);
    const __m128i eight = _mm_maskz_loadu_epi8(bytes, codes + column / 2);
    const __m512i spread = _mm512_permutexvar_epi32(words, _mm512_castsi128_si512(eight));
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(spread, shifts), table);
  });
}

void DecodeInt8Avx512(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(left), codes + column);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  });
}

void DecodeE4M3Avx512(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(left), codes + column);
    return WidenE4M3(E4M3ToF16(_mm256_cvtepi8_epi16(bytes)));
  });
}

}  // namespace octavo
