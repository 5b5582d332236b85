// Vector functions that several AVX-512 kernels share. Only for files compiled for AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

// In an anonymous namespace on purpose: each ISA file gets its own copy, so that the linker never
// hands code compiled for AVX-512 to a file that is not.
namespace octavo {
namespace {  // NOLINT(google-build-namespaces)

// The first min(count, 16) lanes.
[[maybe_unused]] inline __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1U << count) - 1);
}

// exp(x), within 2 ulp where the result is normal; exactly 0 below -87.3 (where e^x leaves the
// normal range), infinity above 88.72, NaN for NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, n whole; e^r by its Taylor polynomial of degree 7 (its
// remainder, r^8 / 8!, is below 2^-27); times 2^n by vscalef, which also overflows as it should.
// ln 2 is split in two so that n * kLn2High is exact.
[[maybe_unused]] inline __m512 Exp(__m512 x) {
  constexpr float kLog2E = 0x1.715476p+0F;
  constexpr float kLn2High = 0x1.62e4p-1F;  // 15 bits
  constexpr float kLn2Low = 0x1.7f7d1cp-20F;
  constexpr float kLowest = -0x1.5d589ep+6F;  // ln(2^-126), rounded up
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(kLog2E)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2High), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(kLn2Low), r);
  __m512 p = _mm512_set1_ps(1.0F / 5040);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 720));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  const __m512 result = _mm512_scalef_ps(p, n);
  // Infinities make r NaN: +inf is put back here, -inf falls below kLowest.
  const __mmask16 too_large = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1.62e43p+6F), _CMP_GT_OQ);
  const __mmask16 normal_or_nan = _mm512_cmp_ps_mask(x, _mm512_set1_ps(kLowest), _CMP_NLT_UQ);
  return _mm512_mask_mov_ps(_mm512_maskz_mov_ps(normal_or_nan, result), too_large,
                            _mm512_set1_ps(__builtin_inff()));
}

// 16 bf16 values as f32.
[[maybe_unused]] inline __m512 WidenBf16(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// The sums of the lanes of a, b, c and d, in that order: 13 instructions for four sums.
[[maybe_unused]] inline __m128 SumEach(__m512 a, __m512 b, __m512 c, __m512 d) {
  // In each quarter: a0+a2 b0+b2 a1+a3 b1+b3, then a b c d.
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512 quarters =
      _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
  const __m256 halves =
      _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm512_extractf32x8_ps(quarters, 1));
  return _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}

}  // namespace
}  // namespace octavo
