// The Hadamard transform on AVX2: pairs within a vector by shuffles, others two rounds at a time,
// so that each pass over memory does the work of two.
#include <immintrin.h>

#include "kernels/hadamard/kernels.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 8;

// Rounds h = 1, 2 and 4 of eight values. In each, a lane becomes its partner's value plus its own,
// which is negated in the lanes that subtract.
inline __m256 WithinVector(__m256 a) {
  const __m256 odd = _mm256_setr_ps(0.0F, -0.0F, 0.0F, -0.0F, 0.0F, -0.0F, 0.0F, -0.0F);
  const __m256 upper_pair = _mm256_setr_ps(0.0F, 0.0F, -0.0F, -0.0F, 0.0F, 0.0F, -0.0F, -0.0F);
  const __m256 upper_half = _mm256_setr_ps(0.0F, 0.0F, 0.0F, 0.0F, -0.0F, -0.0F, -0.0F, -0.0F);
  a = _mm256_add_ps(_mm256_permute_ps(a, 0xB1), _mm256_xor_ps(a, odd));
  a = _mm256_add_ps(_mm256_permute_ps(a, 0x4E), _mm256_xor_ps(a, upper_pair));
  return _mm256_add_ps(_mm256_permute2f128_ps(a, a, 0x01), _mm256_xor_ps(a, upper_half));
}

// Rounds h and 2h, h a multiple of kLanes.
inline void TwoRounds(float* x, int64_t n, int64_t h) {
  for (int64_t i = 0; i < n; i += 4 * h) {
    for (int64_t j = i; j < i + h; j += kLanes) {
      const __m256 a = _mm256_loadu_ps(x + j);
      const __m256 b = _mm256_loadu_ps(x + j + h);
      const __m256 c = _mm256_loadu_ps(x + j + 2 * h);
      const __m256 d = _mm256_loadu_ps(x + j + 3 * h);
      const __m256 sum_ab = _mm256_add_ps(a, b);
      const __m256 difference_ab = _mm256_sub_ps(a, b);
      const __m256 sum_cd = _mm256_add_ps(c, d);
      const __m256 difference_cd = _mm256_sub_ps(c, d);
      _mm256_storeu_ps(x + j, _mm256_add_ps(sum_ab, sum_cd));
      _mm256_storeu_ps(x + j + h, _mm256_add_ps(difference_ab, difference_cd));
      _mm256_storeu_ps(x + j + 2 * h, _mm256_sub_ps(sum_ab, sum_cd));
      _mm256_storeu_ps(x + j + 3 * h, _mm256_sub_ps(difference_ab, difference_cd));
    }
  }
}

// The last round, h = n / 2.
inline void LastRound(float* x, int64_t h) {
  for (int64_t j = 0; j < h; j += kLanes) {
    const __m256 a = _mm256_loadu_ps(x + j);
    const __m256 b = _mm256_loadu_ps(x + j + h);
    _mm256_storeu_ps(x + j, _mm256_add_ps(a, b));
    _mm256_storeu_ps(x + j + h, _mm256_sub_ps(a, b));
  }
}

}  // namespace

void HadamardAvx2(float* x, int64_t n) {
  if (n < kLanes) return HadamardRef(x, n);
  for (int64_t i = 0; i < n; i += kLanes)
    _mm256_storeu_ps(x + i, WithinVector(_mm256_loadu_ps(x + i)));
  int64_t h = kLanes;
  for (; 4 * h <= n; h *= 4) TwoRounds(x, n, h);
  if (h < n) LastRound(x, h);
}

}  // namespace octavo
