// Rotary position embedding on AVX-512: products and sums rounded one by one, as the reference
// does.
#include "kernels/rope/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

void RopeAvx512(float* x, int64_t half, const float* cos, const float* sin) {
  for (int64_t i = 0; i < half; i += 16) {
    const __mmask16 lanes = FirstLanes(half - i);
    const __m512 low = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512 high = _mm512_maskz_loadu_ps(lanes, x + half + i);
    const __m512 c = _mm512_maskz_loadu_ps(lanes, cos + i);
    const __m512 s = _mm512_maskz_loadu_ps(lanes, sin + i);
    _mm512_mask_storeu_ps(x + i, lanes,
                          _mm512_sub_ps(_mm512_mul_ps(low, c), _mm512_mul_ps(high, s)));
    _mm512_mask_storeu_ps(x + half + i, lanes,
                          _mm512_add_ps(_mm512_mul_ps(high, c), _mm512_mul_ps(low, s)));
  }
}

}  // namespace octavo
