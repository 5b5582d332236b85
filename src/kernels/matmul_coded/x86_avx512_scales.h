// Scales of coded weights on AVX-512, and E4M3 bytes. Only for files compiled for AVX-512.
#pragma once

#include "kernels/matmul_coded/kernels.h"
#include "kernels/x86_avx512_math.h"

// In an anonymous namespace on purpose: see x86_avx512_math.h.
namespace octavo {
namespace {  // NOLINT(google-build-namespaces)

constexpr int64_t kLanes = 16;

// Columns of a chunk, at most, and of a unit, at least.
constexpr int64_t kMostChunkBlocks = 32;
constexpr int64_t kSmallestUnit = 16;

// f16 bits of E4M3's fields stand for 2^-8 times the value.
constexpr float kE4M3AsF16 = 256;

[[maybe_unused]] inline int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}
[[maybe_unused]] inline int64_t Max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

[[maybe_unused]] inline __mmask64 FirstBytes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

[[maybe_unused]] inline __m512 WidenE4M3(__m256i f16) {
  return _mm512_mul_ps(_mm512_cvtph_ps(f16), _mm512_set1_ps(kE4M3AsF16));
}

// 16 E4M3 bytes, sign-extended to words, to f16 of the same fields.
[[maybe_unused]] inline __m256i E4M3ToF16(__m256i words) {
  return _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(-0x4080));
}

// ---- scales -------------------------------------------------------------------------------------

// The first `lanes` of 16 scales of a format, zeros behind, less kFactor. None is NaN.
struct F32Scales {
  static constexpr int64_t kBytes = 4;
  static constexpr float kFactor = 1;
  static __m512 Load(const uint8_t* bytes, __mmask16 lanes) {
    return _mm512_maskz_loadu_ps(lanes, bytes);
  }
};
struct Bf16Scales {
  static constexpr int64_t kBytes = 2;
  static constexpr float kFactor = 1;
  static __m512 Load(const uint8_t* bytes, __mmask16 lanes) {
    return WidenBf16(_mm256_maskz_loadu_epi16(lanes, bytes));
  }
};
struct E4M3Scales {
  static constexpr int64_t kBytes = 1;
  static constexpr float kFactor = kE4M3AsF16;
  static __m512 Load(const uint8_t* bytes, __mmask16 lanes) {
    return _mm512_cvtph_ps(E4M3ToF16(_mm256_cvtepi8_epi16(_mm_maskz_loadu_epi8(lanes, bytes))));
  }
};
struct E8M0Scales {
  static constexpr int64_t kBytes = 1;
  static constexpr float kFactor = 1;
  static __m512 Load(const uint8_t* bytes, __mmask16 lanes) {
    const __m512i exponents = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, bytes));
    // Code 0 is 2^-127, a subnormal.
    const __m512i bits = _mm512_mask_mov_epi32(_mm512_slli_epi32(exponents, 23),
                                               _mm512_testn_epi32_mask(exponents, exponents),
                                               _mm512_set1_epi32(0x00400000));
    return _mm512_maskz_mov_ps(lanes, _mm512_castsi512_ps(bits));
  }
};

[[maybe_unused]] inline __m512 LoadZeroPoints(const CodedMatrix& w, int64_t unit, int64_t count) {
  const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(count), w.zero_points + unit);
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

// How the columns of a chunk find their scales: element (column >> shift), less that of the first.
struct Units {
  int shift;         // log2 of the columns of a scale
  int64_t repeated;  // 0, or: units are no power of two, and each scale stands once for each such
                     // run of columns
};

[[maybe_unused]] inline Units UnitsOf(const CodedMatrix& w) {
  if (w.unit_columns >= w.k) return {62, 0};
  const bool power_of_two = (w.unit_columns & (w.unit_columns - 1)) == 0;
  const auto columns = static_cast<uint64_t>(power_of_two ? w.unit_columns : kSmallestUnit);
  return {__builtin_ctzll(columns), power_of_two ? 0 : kSmallestUnit};
}

// The scales of some columns of a row of w, and scale * zero point (zeros where w has none); behind
// them what a vector may read, zeros.
struct ChunkScales {
  static constexpr int64_t kMost = kMostChunkBlocks * kInputBlock / kSmallestUnit + 2 * kLanes;
  alignas(64) float scales[kMost];
  alignas(64) float offsets[kMost] = {};

  // `factor` is that between values and codes. Zeros behind the scales only where they are asked
  // for.
  void Fill(const CodedMatrix& w, int64_t row, int64_t begin, int64_t end, const Units& units,
            float factor, bool zeros_behind) {
    const int64_t row_units = row / w.unit_rows * w.scale_columns;
    const int64_t first = begin >> units.shift;
    if (units.repeated != 0) return FillRepeated(w, row_units, begin, end, units.repeated, factor);
    const int64_t count = ((end - 1) >> units.shift) + 1 - first;
    const int64_t behind = zeros_behind ? kLanes : 0;
    switch (w.scale_format) {
      case ScaleFormat::kF32:
        return FillFrom<F32Scales>(w, row_units + first, count, behind, factor);
      case ScaleFormat::kBf16:
        return FillFrom<Bf16Scales>(w, row_units + first, count, behind, factor);
      case ScaleFormat::kE4M3:
        return FillFrom<E4M3Scales>(w, row_units + first, count, behind, factor);
      case ScaleFormat::kE8M0:
        return FillFrom<E8M0Scales>(w, row_units + first, count, behind, factor);
    }
  }

  // (value - zero point) * scale, both of one unit.
  __m512 Apply(int64_t unit, __m512 value, bool zero_points) const {
    const __m512 scale = _mm512_set1_ps(scales[unit]);
    if (!zero_points) return _mm512_mul_ps(value, scale);
    return _mm512_fmsub_ps(value, scale, _mm512_set1_ps(offsets[unit]));
  }

 private:
  // Units [first, first + count) and `behind` zeros.
  template <typename Format>
  void FillFrom(const CodedMatrix& w, int64_t first, int64_t count, int64_t behind, float factor) {
    const auto* bytes = static_cast<const uint8_t*>(w.scales) + first * Format::kBytes;
    const __m512 multiplier = _mm512_set1_ps(w.multiplier * Format::kFactor);
    const __m512 of_codes = _mm512_set1_ps(w.multiplier * Format::kFactor * factor);
    for (int64_t i = 0; i < count + behind; i += kLanes) {
      const int64_t valid = count > i ? count - i : 0;
      const __m512 stored = Format::Load(bytes + i * Format::kBytes, FirstLanes(valid));
      _mm512_store_ps(scales + i, _mm512_mul_ps(stored, of_codes));
      if (w.zero_points == nullptr) continue;
      _mm512_store_ps(offsets + i, _mm512_mul_ps(_mm512_mul_ps(stored, multiplier),
                                                 LoadZeroPoints(w, first + i, valid)));
    }
  }

  void FillRepeated(const CodedMatrix& w, int64_t row_units, int64_t begin, int64_t end,
                    int64_t run, float factor) {
    int64_t at = 0;
    for (int64_t column = begin; column < end; column += run, ++at) {
      const int64_t unit = row_units + column / w.unit_columns;
      const float scale = ScaleAt(w, unit);
      scales[at] = scale * factor;
      if (w.zero_points != nullptr) offsets[at] = scale * static_cast<float>(w.zero_points[unit]);
    }
    _mm512_storeu_ps(scales + at, _mm512_setzero_ps());
    _mm512_storeu_ps(offsets + at, _mm512_setzero_ps());
  }
};

}  // namespace
}  // namespace octavo
