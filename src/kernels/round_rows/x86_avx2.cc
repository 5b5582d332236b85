// Rounding of activations on AVX2: as x86_avx512.cc does it, 8 lanes at a time.
#include "kernels/round_rows/kernels.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 8;

inline __m256i BitsOf(__m256 value) {
  return _mm256_castps_si256(value);
}

inline __m256 Magnitude(__m256 value) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), value);
}

template <int Dropped>
inline __m256 RoundSmall(__m256 value, float largest, float normal, float magic) {
  const __m256 sign = _mm256_and_ps(value, _mm256_set1_ps(-0.0F));
  const __m256 magnitude = _mm256_min_ps(Magnitude(value), _mm256_set1_ps(largest));
  const __m256i bits = BitsOf(magnitude);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, Dropped), _mm256_set1_epi32(1));
  const __m256i half = _mm256_set1_epi32((1 << (Dropped - 1)) - 1);
  const __m256i raised = _mm256_add_epi32(_mm256_add_epi32(bits, half), odd);
  const __m256i cut = _mm256_slli_epi32(_mm256_srli_epi32(raised, Dropped), Dropped);
  const __m256 step = _mm256_set1_ps(magic);
  const __m256 subnormal = _mm256_sub_ps(_mm256_add_ps(magnitude, step), step);
  const __m256 is_subnormal = _mm256_cmp_ps(magnitude, _mm256_set1_ps(normal), _CMP_LT_OQ);
  const __m256 rounded = _mm256_blendv_ps(_mm256_castsi256_ps(cut), subnormal, is_subnormal);
  return _mm256_or_ps(rounded, sign);
}

template <typename Round>
inline void RoundEach(const float* x, int64_t count, float scale, float* out, const Round& round) {
  const __m256 divisor = _mm256_set1_ps(scale);
  for (int64_t j = 0; j < count; j += kLanes) {
    const __m256i lanes = FirstLanes(count - j);
    const __m256 value = _mm256_div_ps(_mm256_maskload_ps(x + j, lanes), divisor);
    _mm256_maskstore_ps(out + j, lanes, _mm256_mul_ps(round(value), divisor));
  }
}

}  // namespace

GroupRange RangeOfGroupAvx2(const float* x, int64_t count) {
  __m256 low = _mm256_setzero_ps();
  __m256 high = _mm256_setzero_ps();
  __m256i largest = _mm256_setzero_si256();
  for (int64_t j = 0; j < count; j += kLanes) {
    const __m256 value = _mm256_maskload_ps(x + j, FirstLanes(count - j));
    // The second operand when they are equal: zeros stay positive.
    low = _mm256_min_ps(value, low);
    high = _mm256_max_ps(value, high);
    largest = _mm256_max_epu32(largest, BitsOf(Magnitude(value)));
  }
  const __m256i below_infinity = _mm256_set1_epi32(0x7F7FFFFF);
  if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, below_infinity)) != 0)
    return {0, __builtin_nanf("")};
  const __m256 sign = _mm256_set1_ps(-0.0F);
  // -max(-0) would make a zero negative.
  return {0.0F - ReduceMax(_mm256_xor_ps(low, sign)), ReduceMax(high)};
}

void RoundGroupAvx2(const float* x, int64_t count, RoundTo to, int bits, float scale,
                    float zero_point, float* out) {
  switch (to) {
    case RoundTo::kInt: {
      const auto half = static_cast<float>(1 << (bits - 1));
      const __m256 bottom = _mm256_set1_ps(-half);
      const __m256 top = _mm256_set1_ps(half - 1);
      const __m256 zero = _mm256_set1_ps(zero_point);
      return RoundEach(x, count, scale, out, [&](__m256 value) {
        const __m256 shifted = _mm256_add_ps(value, zero);
        const __m256 clamped = _mm256_min_ps(_mm256_max_ps(shifted, bottom), top);
        const __m256 code = _mm256_round_ps(clamped, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        return _mm256_sub_ps(code, zero);
      });
    }
    case RoundTo::kE4M3:
      return RoundEach(x, count, scale, out, [](__m256 value) {
        return RoundSmall<20>(value, 448.0F, 0x1p-6F, 0x1.8p14F);
      });
    case RoundTo::kE2M1:
      return RoundEach(x, count, scale, out,
                       [](__m256 value) { return RoundSmall<22>(value, 6.0F, 1.0F, 0x1.8p22F); });
  }
}

}  // namespace octavo
