// Attention on AVX-512: flash.h on 16 floats.
#include "kernels/attention/flash.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

// Lanes 0 .. count - 1, for any count.
inline __mmask16 LanesBelow(int64_t count) {
  return count <= 0 ? __mmask16{0} : FirstLanes(count);
}

struct Avx512 {
  using Floats = __m512;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kRows = 6;
  static constexpr int kVectors = 4;
  static constexpr int64_t kFewRows = 4;

  static Floats Set(float value) { return _mm512_set1_ps(value); }
  static Floats Load(const float* src) { return _mm512_loadu_ps(src); }
  static Floats Load(const float* src, int64_t count) {
    return _mm512_maskz_loadu_ps(LanesBelow(count), src);
  }
  static Floats Load(const Bf16* src, int64_t count) {
    return WidenBf16(_mm256_maskz_loadu_epi16(LanesBelow(count), src));
  }
  static Floats Load(const Int8* src, int64_t count) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(LanesBelow(count), src)));
  }
  // E4M3's bits one to the right, the sign apart, are those of an f16 of 1/256 of the value, that
  // of a subnormal too; NaN would be 480 / 256.
  static Floats Load(const E4M3* src, int64_t count) {
    const __m256i code = _mm256_cvtepi8_epi16(_mm_maskz_loadu_epi8(LanesBelow(count), src));
    const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi16(0x7F));
    const __m256i sign = _mm256_and_si256(code, _mm256_set1_epi16(static_cast<int16_t>(0x8000)));
    const __m256i half = _mm256_or_si256(sign, _mm256_slli_epi16(magnitude, 7));
    const __m512 value = _mm512_mul_ps(_mm512_cvtph_ps(half), Set(256));
    const __mmask16 is_nan = _mm256_cmpeq_epi16_mask(magnitude, _mm256_set1_epi16(0x7F));
    return _mm512_mask_mov_ps(value, is_nan, Set(__builtin_nanf("")));
  }
  // Lanes [begin, end), minus infinity elsewhere.
  static Floats LoadOrLowest(const float* src, int64_t begin, int64_t end) {
    const __mmask16 lanes = LanesBelow(end) & static_cast<__mmask16>(~LanesBelow(begin));
    return _mm512_mask_loadu_ps(Set(-__builtin_inff()), lanes, src);
  }
  static void Store(float* dst, Floats value) { _mm512_storeu_ps(dst, value); }
  static void Store(float* dst, Floats value, int64_t count) {
    _mm512_mask_storeu_ps(dst, LanesBelow(count), value);
  }
  // The sums of the lanes of a, b, c and d.
  static void StoreSums(float* dst, Floats a, Floats b, Floats c, Floats d) {
    _mm_storeu_ps(dst, SumEach(a, b, c, d));
  }

  static Floats Add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  static Floats Subtract(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
  static Floats Multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static Floats ExpOf(Floats a) { return Exp(a); }
  static float First(Floats a) { return _mm512_cvtss_f32(a); }
  static float ReduceAdd(Floats a) { return _mm512_reduce_add_ps(a); }
  static float ReduceMax(Floats a) { return _mm512_reduce_max_ps(a); }

  // 16 x 16 floats: in four rounds, neighbours at distance 1, 2, 4 and 8 swap halves.
  static void Transpose(__m512 (&rows)[16]) {
    __m512 a[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      a[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
      a[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    __m512 b[16];
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
      b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xEE);
      b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
      b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
      a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xDD);
      a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
      a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xDD);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
      rows[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
      rows[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xDD);
      rows[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xDD);
    }
  }
};

}  // namespace

int64_t AttendScratchAvx512(int64_t vectors, int64_t head_dim) {
  return Scratch<Avx512>::Floats(vectors, head_dim);
}

void AttendAvx512(const AttentionTile& tile) {
  AttendFlash<Avx512>(tile);
}

}  // namespace octavo
