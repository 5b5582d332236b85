// Rotary position embedding on AVX2: products and sums rounded one by one, as the reference does.
#include "kernels/rope/kernels.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

void RopeAvx2(float* x, int64_t half, const float* cos, const float* sin) {
  for (int64_t i = 0; i < half; i += 8) {
    const __m256i lanes = FirstLanes(half - i);
    const __m256 low = _mm256_maskload_ps(x + i, lanes);
    const __m256 high = _mm256_maskload_ps(x + half + i, lanes);
    const __m256 c = _mm256_maskload_ps(cos + i, lanes);
    const __m256 s = _mm256_maskload_ps(sin + i, lanes);
    _mm256_maskstore_ps(x + i, lanes, _mm256_sub_ps(_mm256_mul_ps(low, c), _mm256_mul_ps(high, s)));
    _mm256_maskstore_ps(x + half + i, lanes,
                        _mm256_add_ps(_mm256_mul_ps(high, c), _mm256_mul_ps(low, s)));
  }
}

}  // namespace octavo
