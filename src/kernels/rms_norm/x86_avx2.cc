// RMSNorm on AVX2: one pass for the sum of squares in four chains, one for the result.
#include "kernels/rms_norm/kernels.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

void RmsNormAvx2(const float* x, int64_t k, const float* weight, float epsilon, float* y) {
  __m256 sums[4];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  int64_t j = 0;
  for (; j + 32 <= k; j += 32) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m256 value = _mm256_loadu_ps(x + j + 8 * c);
      sums[c] = _mm256_fmadd_ps(value, value, sums[c]);
    }
  }
  for (; j < k; j += 8) {
    const __m256 value = _mm256_maskload_ps(x + j, FirstLanes(k - j));
    sums[0] = _mm256_fmadd_ps(value, value, sums[0]);
  }
  const float sum =
      ReduceAdd(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
  const float mean = sum / static_cast<float>(k) + epsilon;
  const __m256 factor = _mm256_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean))));
  for (j = 0; j < k; j += 8) {
    const __m256i lanes = FirstLanes(k - j);
    const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + j, lanes), factor);
    _mm256_maskstore_ps(y + j, lanes, _mm256_mul_ps(scaled, _mm256_maskload_ps(weight + j, lanes)));
  }
}

}  // namespace octavo
