// Activation quantization on AVX-512: the same IEEE operations as the reference, 16 lanes
// each.
#include "kernels/quantize_rows/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

// Rounds to nearest, ties to even (the processor's default mode), clamps and narrows.
inline void StoreCodes(__m512 value, __mmask16 lanes, int8_t* codes) {
  const __m512 clamped =
      _mm512_min_ps(_mm512_max_ps(value, _mm512_set1_ps(-128.0F)), _mm512_set1_ps(127.0F));
  _mm512_mask_cvtepi32_storeu_epi8(codes, lanes, _mm512_cvtps_epi32(clamped));
}

}  // namespace

// The magnitudes' bits compared as integers: for non-negative floats the order is the same, and
// infinities and NaN are above every finite number, so none is lost.
float LargestMagnitudeAvx512(const float* x, int64_t k) {
  const __m512i sign_off = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i largest = _mm512_setzero_si512();
  for (int64_t j = 0; j < k; j += 16) {
    const __m512 value = _mm512_maskz_loadu_ps(FirstLanes(k - j), x + j);
    largest = _mm512_max_epu32(largest, _mm512_and_si512(_mm512_castps_si512(value), sign_off));
  }
  const uint32_t bits = _mm512_reduce_max_epu32(largest);
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, sizeof(magnitude));
  return magnitude;
}

RowRange RangeWithZeroAvx512(const float* x, int64_t k) {
  __m512 low = _mm512_setzero_ps();
  __m512 high = _mm512_setzero_ps();
  for (int64_t j = 0; j < k; j += 16) {
    const __m512 value = _mm512_maskz_loadu_ps(FirstLanes(k - j), x + j);
    low = _mm512_min_ps(low, value);
    high = _mm512_max_ps(high, value);
  }
  return {_mm512_reduce_min_ps(low), _mm512_reduce_max_ps(high)};
}

void RoundToInt8Avx512(const float* x, int64_t k, const Int8Rounding& rounding, int8_t* codes) {
  const __m512 factor = _mm512_set1_ps(rounding.factor);
  const __m512 zero_point = _mm512_set1_ps(rounding.zero_point);
  for (int64_t j = 0; j < k; j += 16) {
    const __mmask16 lanes = FirstLanes(k - j);
    const __m512 value = _mm512_maskz_loadu_ps(lanes, x + j);
    const __m512 scaled =
        rounding.divide ? _mm512_div_ps(value, factor) : _mm512_mul_ps(value, factor);
    StoreCodes(_mm512_add_ps(scaled, zero_point), lanes, codes + j);
  }
}

}  // namespace octavo
