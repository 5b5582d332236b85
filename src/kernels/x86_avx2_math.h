// Vector functions that several AVX2 kernels share. Only for files compiled for AVX2 and FMA.
#pragma once

#include <immintrin.h>

#include <cstdint>

// In an anonymous namespace on purpose: see x86_avx512_math.h.
namespace octavo {
namespace {  // NOLINT(google-build-namespaces)

// The first min(count, 8) lanes.
[[maybe_unused]] inline __m256i FirstLanes(int64_t count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count >= 8 ? 8 : static_cast<int>(count)), lanes);
}

// exp(x) as Exp of x86_avx512_math.h computes it, with the same bounds and special values. 2^n is
// two factors made from bits, since n may be 128.
[[maybe_unused]] inline __m256 Exp(__m256 x) {
  constexpr float kLog2E = 0x1.715476p+0F;
  constexpr float kLn2High = 0x1.62e4p-1F;  // 15 bits
  constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  constexpr float kLowest = -0x1.5d589ep+6F;  // ln(2^-126), rounded up
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(kLog2E)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2High), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(kLn2Low), r);
  __m256 p = _mm256_set1_ps(1.0F / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const auto power = [&](__m256i e) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, bias), 23));
  };
  __m256 result = _mm256_mul_ps(p, power(half));
  result = _mm256_mul_ps(result, power(_mm256_sub_epi32(whole, half)));
  const __m256 too_large = _mm256_cmp_ps(x, _mm256_set1_ps(0x1.62e43p+6F), _CMP_GT_OQ);
  const __m256 too_small = _mm256_cmp_ps(x, _mm256_set1_ps(kLowest), _CMP_LT_OQ);
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  result = _mm256_andnot_ps(too_small, result);
  result = _mm256_blendv_ps(result, _mm256_set1_ps(__builtin_inff()), too_large);
  return _mm256_blendv_ps(result, x, nan);
}

// The sum of the lanes: halves, quarters, eighths.
[[maybe_unused]] inline float ReduceAdd(__m256 x) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

[[maybe_unused]] inline float ReduceMax(__m256 x) {
  __m128 largest = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  largest = _mm_max_ps(largest, _mm_movehl_ps(largest, largest));
  return _mm_cvtss_f32(_mm_max_ss(largest, _mm_movehdup_ps(largest)));
}

}  // namespace
}  // namespace octavo
