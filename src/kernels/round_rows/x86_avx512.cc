// Rounding of activations on AVX-512: the same IEEE operations as the reference, 16 lanes each; the
// small floats by rounding bits of the float32, or, where their steps do not follow the exponent
// (subnormals), by a sum whose last bit is the step.
#include "kernels/round_rows/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 16;

inline __m512i BitsOf(__m512 value) {
  return _mm512_castps_si512(value);
}

// |value|, at most `largest`, to `Dropped` fewer bits of mantissa, ties to even; below `normal` to
// multiples of the last bit of `magic`. With value's sign.
template <unsigned Dropped>
inline __m512 RoundSmall(__m512 value, float largest, float normal, float magic) {
  const __m512i sign = _mm512_and_si512(BitsOf(value), _mm512_set1_epi32(INT32_MIN));
  const __m512 magnitude = _mm512_min_ps(_mm512_abs_ps(value), _mm512_set1_ps(largest));
  const __m512i bits = BitsOf(magnitude);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, Dropped), _mm512_set1_epi32(1));
  const __m512i half = _mm512_set1_epi32((1 << (Dropped - 1)) - 1);
  const __m512i raised = _mm512_add_epi32(_mm512_add_epi32(bits, half), odd);
  const __m512i cut = _mm512_slli_epi32(_mm512_srli_epi32(raised, Dropped), Dropped);
  const __m512 step = _mm512_set1_ps(magic);
  const __m512 subnormal = _mm512_sub_ps(_mm512_add_ps(magnitude, step), step);
  const __mmask16 is_subnormal = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(normal), _CMP_LT_OQ);
  const __m512i rounded = _mm512_mask_mov_epi32(cut, is_subnormal, BitsOf(subnormal));
  return _mm512_castsi512_ps(_mm512_or_si512(rounded, sign));
}

// out[j] = round(x[j] / scale) * scale, 16 at a time.
template <typename Round>
inline void RoundEach(const float* x, int64_t count, float scale, float* out, const Round& round) {
  const __m512 divisor = _mm512_set1_ps(scale);
  for (int64_t j = 0; j < count; j += kLanes) {
    const __mmask16 lanes = FirstLanes(count - j);
    const __m512 value = _mm512_div_ps(_mm512_maskz_loadu_ps(lanes, x + j), divisor);
    _mm512_mask_storeu_ps(out + j, lanes, _mm512_mul_ps(round(value), divisor));
  }
}

}  // namespace

GroupRange RangeOfGroupAvx512(const float* x, int64_t count) {
  __m512 low = _mm512_setzero_ps();
  __m512 high = _mm512_setzero_ps();
  __m512i largest = _mm512_setzero_si512();
  for (int64_t j = 0; j < count; j += kLanes) {
    const __m512 value = _mm512_maskz_loadu_ps(FirstLanes(count - j), x + j);
    // The second operand when they are equal: zeros stay positive.
    low = _mm512_min_ps(value, low);
    high = _mm512_max_ps(value, high);
    largest = _mm512_max_epu32(largest, BitsOf(_mm512_abs_ps(value)));
  }
  constexpr uint32_t kInfinity = 0x7F800000;
  if (_mm512_reduce_max_epu32(largest) >= kInfinity) return {0, __builtin_nanf("")};
  return {_mm512_reduce_min_ps(low), _mm512_reduce_max_ps(high)};
}

void RoundGroupAvx512(const float* x, int64_t count, RoundTo to, int bits, float scale,
                      float zero_point, float* out) {
  switch (to) {
    case RoundTo::kInt: {
      const auto half = static_cast<float>(1 << (bits - 1));
      const __m512 bottom = _mm512_set1_ps(-half);
      const __m512 top = _mm512_set1_ps(half - 1);
      const __m512 zero = _mm512_set1_ps(zero_point);
      return RoundEach(x, count, scale, out, [&](__m512 value) {
        const __m512 shifted = _mm512_add_ps(value, zero);
        const __m512 clamped = _mm512_min_ps(_mm512_max_ps(shifted, bottom), top);
        const __m512 code =
            _mm512_roundscale_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        return _mm512_sub_ps(code, zero);
      });
    }
    case RoundTo::kE4M3:
      return RoundEach(x, count, scale, out, [](__m512 value) {
        return RoundSmall<20>(value, 448.0F, 0x1p-6F, 0x1.8p14F);
      });
    case RoundTo::kE2M1:
      return RoundEach(x, count, scale, out,
                       [](__m512 value) { return RoundSmall<22>(value, 6.0F, 1.0F, 0x1.8p22F); });
  }
}

}  // namespace octavo
