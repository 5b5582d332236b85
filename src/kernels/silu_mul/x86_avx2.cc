// SiluMul on AVX2.
#include "kernels/silu_mul/kernels.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

void SiluMulAvx2(const float* gate, const float* up, int64_t n, float* y) {
  const __m256 one = _mm256_set1_ps(1.0F);
  for (int64_t j = 0; j < n; j += 8) {
    const __m256i lanes = FirstLanes(n - j);
    const __m256 g = _mm256_maskload_ps(gate + j, lanes);
    const __m256 u = _mm256_maskload_ps(up + j, lanes);
    const __m256 exp = Exp(_mm256_sub_ps(_mm256_setzero_ps(), g));
    const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, exp));
    _mm256_maskstore_ps(y + j, lanes, _mm256_mul_ps(silu, u));
  }
}

}  // namespace octavo
