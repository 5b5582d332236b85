// Activation quantization on AVX2: the same IEEE operations as the reference, 8 lanes each.
#include "kernels/quantize_rows/kernels.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

namespace {

// Rounds to nearest, ties to even (the processor's default mode), after clamping.
inline __m256i Codes(const Int8Rounding& rounding, __m256 value) {
  const __m256 factor = _mm256_set1_ps(rounding.factor);
  const __m256 scaled =
      rounding.divide ? _mm256_div_ps(value, factor) : _mm256_mul_ps(value, factor);
  const __m256 shifted = _mm256_add_ps(scaled, _mm256_set1_ps(rounding.zero_point));
  const __m256 clamped =
      _mm256_min_ps(_mm256_max_ps(shifted, _mm256_set1_ps(-128.0F)), _mm256_set1_ps(127.0F));
  return _mm256_cvtps_epi32(clamped);
}

// Eight codes of 32 bits each as bytes.
inline int64_t Narrow(__m256i codes) {
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(codes), _mm256_extracti128_si256(codes, 1));
  return _mm_cvtsi128_si64(_mm_packs_epi16(words, words));
}

}  // namespace

// The magnitudes' bits compared as integers: for non-negative floats the order is the same, and
// infinities and NaN are above every finite number, so none is lost.
float LargestMagnitudeAvx2(const float* x, int64_t k) {
  const __m256i sign_off = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i largest = _mm256_setzero_si256();
  for (int64_t j = 0; j < k; j += 8) {
    const __m256 value = _mm256_maskload_ps(x + j, FirstLanes(k - j));
    largest = _mm256_max_epu32(largest, _mm256_and_si256(_mm256_castps_si256(value), sign_off));
  }
  alignas(32) uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), largest);
  uint32_t bits = 0;
  for (const uint32_t lane : lanes) bits = lane > bits ? lane : bits;
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, sizeof(magnitude));
  return magnitude;
}

RowRange RangeWithZeroAvx2(const float* x, int64_t k) {
  const __m256 zero = _mm256_setzero_ps();
  __m256 negated_low = zero;
  __m256 high = zero;
  for (int64_t j = 0; j < k; j += 8) {
    const __m256 value = _mm256_maskload_ps(x + j, FirstLanes(k - j));
    negated_low = _mm256_max_ps(negated_low, _mm256_sub_ps(zero, value));
    high = _mm256_max_ps(high, value);
  }
  return {-ReduceMax(negated_low), ReduceMax(high)};
}

void RoundToInt8Avx2(const float* x, int64_t k, const Int8Rounding& rounding, int8_t* codes) {
  int64_t j = 0;
  for (; j + 8 <= k; j += 8) {
    const int64_t eight = Narrow(Codes(rounding, _mm256_loadu_ps(x + j)));
    __builtin_memcpy(codes + j, &eight, 8);
  }
  if (j == k) return;
  const int64_t rest = Narrow(Codes(rounding, _mm256_maskload_ps(x + j, FirstLanes(k - j))));
  __builtin_memcpy(codes + j, &rest, static_cast<size_t>(k - j));
}

}  // namespace octavo
