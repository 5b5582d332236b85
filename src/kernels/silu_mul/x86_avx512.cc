// SiluMul on AVX-512.
#include "kernels/silu_mul/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

void SiluMulAvx512(const float* gate, const float* up, int64_t n, float* y) {
  const __m512 one = _mm512_set1_ps(1.0F);
  for (int64_t j = 0; j < n; j += 16) {
    const __mmask16 lanes = FirstLanes(n - j);
    const __m512 g = _mm512_maskz_loadu_ps(lanes, gate + j);
    const __m512 u = _mm512_maskz_loadu_ps(lanes, up + j);
    const __m512 exp = Exp(_mm512_sub_ps(_mm512_setzero_ps(), g));
    const __m512 silu = _mm512_div_ps(g, _mm512_add_ps(one, exp));
    _mm512_mask_storeu_ps(y + j, lanes, _mm512_mul_ps(silu, u));
  }
}

}  // namespace octavo
