// Attention on AVX2: flash.h on 8 floats.
#include "kernels/attention/flash.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

namespace {

// Lanes 0 .. count - 1, for any count.
inline __m256i LanesBelow(int64_t count) {
  return FirstLanes(count < 0 ? 0 : count);
}

// The first `count` of 8 bytes, zeros behind them.
inline __m128i LoadBytes(const void* src, int64_t count) {
  __m128i bytes = _mm_setzero_si128();
  if (count >= 8) {
    bytes = _mm_loadl_epi64(static_cast<const __m128i*>(src));
  } else if (count > 0) {
    __builtin_memcpy(&bytes, src, static_cast<size_t>(count));
  }
  return bytes;
}

struct Avx2 {
  using Floats = __m256;
  static constexpr int64_t kLanes = 8;
  static constexpr int64_t kRows = 6;
  static constexpr int kVectors = 2;
  static constexpr int64_t kFewRows = 2;

  static Floats Set(float value) { return _mm256_set1_ps(value); }
  static Floats Load(const float* src) { return _mm256_loadu_ps(src); }
  static Floats Load(const float* src, int64_t count) {
    return _mm256_maskload_ps(src, LanesBelow(count));
  }
  static Floats Load(const Bf16* src, int64_t count) {
    __m128i bits = _mm_setzero_si128();
    if (count >= kLanes) {
      bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
    } else if (count > 0) {
      __builtin_memcpy(&bits, src, static_cast<size_t>(count) * sizeof(Bf16));
    }
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Floats Load(const Int8* src, int64_t count) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(LoadBytes(src, count)));
  }
  // E4M3's bits one to the right, the sign apart, are those of an f16 of 1/256 of the value, that
  // of a subnormal too; NaN would be 480 / 256.
  static Floats Load(const E4M3* src, int64_t count) {
    const __m128i code = _mm_cvtepi8_epi16(LoadBytes(src, count));
    const __m128i magnitude = _mm_and_si128(code, _mm_set1_epi16(0x7F));
    const __m128i sign = _mm_and_si128(code, _mm_set1_epi16(static_cast<int16_t>(0x8000)));
    const __m128i half = _mm_or_si128(sign, _mm_slli_epi16(magnitude, 7));
    const __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(half), Set(256));
    const __m256i is_nan = _mm256_cvtepi16_epi32(_mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7F)));
    return _mm256_blendv_ps(value, Set(__builtin_nanf("")), _mm256_castsi256_ps(is_nan));
  }
  // Lanes [begin, end), minus infinity elsewhere.
  static Floats LoadOrLowest(const float* src, int64_t begin, int64_t end) {
    const __m256i lanes = _mm256_andnot_si256(LanesBelow(begin), LanesBelow(end));
    return _mm256_blendv_ps(Set(-__builtin_inff()), Load(src), _mm256_castsi256_ps(lanes));
  }
  static void Store(float* dst, Floats value) { _mm256_storeu_ps(dst, value); }
  static void Store(float* dst, Floats value, int64_t count) {
    _mm256_maskstore_ps(dst, LanesBelow(count), value);
  }
  // The sums of the lanes of a, b, c and d.
  static void StoreSums(float* dst, Floats a, Floats b, Floats c, Floats d) {
    const __m256 halves = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_storeu_ps(dst,
                  _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1)));
  }

  static Floats Add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  static Floats Subtract(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats MultiplyAdd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats ExpOf(Floats a) { return Exp(a); }
  static float First(Floats a) { return _mm256_cvtss_f32(a); }
  static float ReduceAdd(Floats a) { return octavo::ReduceAdd(a); }
  static float ReduceMax(Floats a) { return octavo::ReduceMax(a); }

  // 8 x 8 floats: in three rounds, neighbours at distance 1, 2 and 4 swap halves.
  static void Transpose(Floats (&rows)[8]) {
    Floats a[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      a[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      a[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    Floats b[8];
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
      b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xEE);
      b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
      b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xEE);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
      rows[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
  }
};

}  // namespace

int64_t AttendScratchAvx2(int64_t vectors, int64_t head_dim) {
  return Scratch<Avx2>::Floats(vectors, head_dim);
}

void AttendAvx2(const AttentionTile& tile) {
  AttendFlash<Avx2>(tile);
}

}  // namespace octavo
