// RMSNorm on AVX-512: one pass for the sum of squares in four chains, one for the result.
#include "kernels/rms_norm/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

void RmsNormAvx512(const float* x, int64_t k, const float* weight, float epsilon, float* y) {
  __m512 sums[4] = {};
  int64_t j = 0;
  for (; j + 64 <= k; j += 64) {
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m512 value = _mm512_loadu_ps(x + j + 16 * c);
      sums[c] = _mm512_fmadd_ps(value, value, sums[c]);
    }
  }
  for (; j < k; j += 16) {
    const __m512 value = _mm512_maskz_loadu_ps(FirstLanes(k - j), x + j);
    sums[0] = _mm512_fmadd_ps(value, value, sums[0]);
  }
  const float sum = _mm512_reduce_add_ps(
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
  const float mean = sum / static_cast<float>(k) + epsilon;
  const __m512 factor = _mm512_set1_ps(1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean))));
  for (j = 0; j < k; j += 16) {
    const __mmask16 lanes = FirstLanes(k - j);
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + j), factor);
    _mm512_mask_storeu_ps(y + j, lanes,
                          _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, weight + j)));
  }
}

}  // namespace octavo
