// Coded weights on AVX2: one row of w at a time, each vector of 8 weights made once for up to four
// rows of x. Nibbles are looked up in two halves of the table, of which the code's high bit picks
// one; their lanes are words of eight columns, so half a block shares a vector of scales. Bytes are
// scaled one by one.
#include "kernels/matmul_coded/kernels.h"
#include "kernels/x86_avx2_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 8;
constexpr int64_t kWordColumns = 8;
constexpr int64_t kBlockWords = kInputBlock / kWordColumns;
constexpr int kRowsOfX = 4;
constexpr int64_t kChunkBlocks = 32;  // whose scales are widened at a time

// f16 bits of E4M3's fields stand for 2^-8 times the value.
constexpr float kE4M3AsF16 = 256;

int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

inline int64_t UnitEnd(const CodedMatrix& w, int64_t column) {
  return w.unit_columns >= w.k ? w.k : (column / w.unit_columns + 1) * w.unit_columns;
}

// For each word of eight columns of a chunk its scale, and scale * zero point; zeros behind.
struct WordScales {
  alignas(32) float scales[kChunkBlocks * kBlockWords];
  alignas(32) float offsets[kChunkBlocks * kBlockWords];

  void Fill(const CodedMatrix& w, int64_t row, int64_t begin, int64_t end) {
    const int64_t row_units = row / w.unit_rows * w.scale_columns;
    int64_t word = 0;
    for (int64_t column = begin; column < end;) {
      const int64_t unit = row_units + column / w.unit_columns;
      const float scale = ScaleAt(w, unit);
      const float offset =
          w.zero_points == nullptr ? 0.0F : scale * static_cast<float>(w.zero_points[unit]);
      const int64_t unit_end = Min(UnitEnd(w, column), end);
      for (; column < unit_end; column += kWordColumns, ++word) {
        scales[word] = scale;
        offsets[word] = offset;
      }
    }
    for (; word % kBlockWords != 0; ++word) scales[word] = offsets[word] = 0;
  }
};

// A table of 16 numbers.
struct Table {
  __m256 low;
  __m256 high;

  explicit Table(const CodedMatrix& w)
      : low(_mm256_loadu_ps(w.table.data())), high(_mm256_loadu_ps(w.table.data() + kLanes)) {}
  // Of the low four bits of each lane.
  __m256 Get(__m256i codes) const {
    const __m256 high_bit = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, codes),
                            _mm256_permutevar8x32_ps(high, codes), high_bit);
  }
};

// Eight bytes as floats, without scale.
struct Int8Codes {
  static constexpr float kScale = 1;
  static __m256 Widen(__m128i bytes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)); }
};
struct E4M3Codes {
  static constexpr float kScale = kE4M3AsF16;
  static __m256 Widen(__m128i bytes) {
    const __m128i words = _mm_slli_epi16(_mm_cvtepi8_epi16(bytes), 7);
    return _mm256_cvtph_ps(_mm_and_si128(words, _mm_set1_epi16(-0x4080)));
  }
};

inline __m128i LoadEight(const uint8_t* bytes) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes));
}

// A row of w times rows [i, i + X) of x, columns of blocks [block, end).
struct Strip {
  const CodedMatrix& w;
  const CodedInput& input;
  int64_t row;
  int64_t i;
  int64_t block;
  int64_t end;
  const WordScales& scales;

  // The first row's inputs of a block; those of the next follow.
  const float* Inputs(int64_t of_block) const {
    return input.arranged + (of_block * input.m + i) * kInputBlock;
  }

  // The codes of a block; where the row ends in it, copied to `last` with zeros behind.
  const uint8_t* Codes(int64_t of_block, int64_t columns_of_byte, uint8_t* last) const {
    const int64_t column = of_block * kInputBlock;
    const uint8_t* codes = w.codes + row * w.row_bytes + column / columns_of_byte;
    if (w.k - column >= kInputBlock) return codes;
    const int64_t count = (w.k - column + columns_of_byte - 1) / columns_of_byte;
    for (int64_t b = 0; b < kInputBlock; ++b) last[b] = b < count ? codes[b] : 0;
    return last;
  }
};

struct Nibbles {
  template <int X>
  static void Multiply(const Strip& strip, __m256 (&sums)[X]) {
    const Table table(strip.w);
    uint8_t last[kInputBlock];
    for (int64_t block = strip.block; block < strip.end; ++block) {
      const float* x = strip.Inputs(block);
      const uint8_t* codes = strip.Codes(block, 2, last);
      for (int64_t half = 0; half < 2; ++half) {
        const __m256i words =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * half));
        __m256 half_sums[X] = {};
#pragma GCC unroll 8
        for (int nibble = 0; nibble < 8; ++nibble) {
          const __m256 value = table.Get(_mm256_srli_epi32(words, 4 * nibble));
          const int64_t at = 16 * nibble + kLanes * half;
#pragma GCC unroll 4
          for (int i = 0; i < X; ++i) {
            const __m256 row = _mm256_load_ps(x + i * kInputBlock + at);
            half_sums[i] = _mm256_fmadd_ps(row, value, half_sums[i]);
          }
        }
        const int64_t word = (block - strip.block) * kBlockWords + kLanes * half;
        const __m256 scale = _mm256_load_ps(strip.scales.scales + word);
#pragma GCC unroll 4
        for (int i = 0; i < X; ++i) {
          sums[i] = _mm256_fmadd_ps(half_sums[i], scale, sums[i]);
          if (strip.input.word_sums == nullptr) continue;
          const int64_t at = (block * strip.input.m + strip.i + i) * kBlockWords + kLanes * half;
          sums[i] = _mm256_fnmadd_ps(_mm256_loadu_ps(strip.input.word_sums + at),
                                     _mm256_load_ps(strip.scales.offsets + word), sums[i]);
        }
      }
    }
  }
};

template <typename Codes>
struct Bytes {
  template <int X>
  static void Multiply(const Strip& strip, __m256 (&sums)[X]) {
    const bool zero_points = strip.w.zero_points != nullptr;
    uint8_t last[kInputBlock];
    __m256 odd_sums[X] = {};  // two chains hide the latency of one
    for (int64_t block = strip.block; block < strip.end; ++block) {
      const float* x = strip.Inputs(block);
      const uint8_t* codes = strip.Codes(block, 1, last);
#pragma GCC unroll 4
      for (int64_t v = 0; v < kBlockWords; ++v) {
        const int64_t word = (block - strip.block) * kBlockWords + v;
        const __m256 scale = _mm256_set1_ps(strip.scales.scales[word] * Codes::kScale);
        __m256 value = _mm256_mul_ps(Codes::Widen(LoadEight(codes + kLanes * v)), scale);
        if (zero_points) value = _mm256_sub_ps(value, _mm256_set1_ps(strip.scales.offsets[word]));
#pragma GCC unroll 4
        for (int i = 0; i < X; ++i) {
          const __m256 row = _mm256_load_ps(x + i * kInputBlock + kLanes * v);
          __m256& sum = v % 2 == 0 ? sums[i] : odd_sums[i];
          sum = _mm256_fmadd_ps(row, value, sum);
        }
      }
    }
    for (int i = 0; i < X; ++i) sums[i] = _mm256_add_ps(sums[i], odd_sums[i]);
  }
};

template <typename Format, int X>
void DotStrip(const Strip& strip, float* y, int64_t ldy) {
  __m256 sums[X] = {};
  Format::Multiply(strip, sums);
  for (int i = 0; i < X; ++i) {
    const float before = strip.block == 0 ? 0.0F : y[i * ldy];
    y[i * ldy] = before + ReduceAdd(sums[i]);
  }
}

template <typename Format>
void DotRows(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input, float* y,
             int64_t ldy) {
  constexpr void (*kStripOfRows[])(const Strip&, float*, int64_t) = {
      nullptr, DotStrip<Format, 1>, DotStrip<Format, 2>, DotStrip<Format, 3>, DotStrip<Format, 4>};
  WordScales scales;
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t block = 0; block < input.blocks; block += kChunkBlocks) {
      const int64_t end = Min(block + kChunkBlocks, input.blocks);
      scales.Fill(w, first + j, block * kInputBlock, Min(end * kInputBlock, w.k));
      for (int64_t i = 0; i < input.m; i += kRowsOfX) {
        const Strip strip{w, input, first + j, i, block, end, scales};
        kStripOfRows[Min(input.m - i, kRowsOfX)](strip, y + i * ldy + j, ldy);
      }
    }
  }
}

// out[0, count) = (values - zero point) * scale of columns [begin, begin + count), 8 at a time;
// groups are multiples of 16. load(column, left) gives the values.
template <typename Load>
inline void Decode(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out,
                   const Load& load) {
  const int64_t row_units = row / w.unit_rows * w.scale_columns;
  int64_t unit_end = begin;
  __m256 scale = _mm256_setzero_ps();
  __m256 zero_point = _mm256_setzero_ps();
  for (int64_t column = begin; column < begin + count; column += kLanes) {
    if (column == unit_end) {
      const int64_t unit = row_units + column / w.unit_columns;
      unit_end = UnitEnd(w, column);
      scale = _mm256_set1_ps(ScaleAt(w, unit));
      if (w.zero_points != nullptr)
        zero_point = _mm256_set1_ps(static_cast<float>(w.zero_points[unit]));
    }
    const int64_t left = begin + count - column;
    const __m256 value = load(column, left);
    _mm256_maskstore_ps(out + column - begin, FirstLanes(left),
                        _mm256_mul_ps(_mm256_sub_ps(value, zero_point), scale));
  }
}

// The first `count` bytes, at most eight, and zeros.
inline uint64_t LoadFirst(const uint8_t* bytes, int64_t count) {
  uint64_t word = 0;
  __builtin_memcpy(&word, bytes, static_cast<size_t>(Min(count, 8)));
  return word;
}

template <typename Codes>
void DecodeBytes(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const auto bytes = static_cast<int64_t>(LoadFirst(codes + column, left));
    return _mm256_mul_ps(Codes::Widen(_mm_cvtsi64_si128(bytes)), _mm256_set1_ps(Codes::kScale));
  });
}

}  // namespace

void DecodeNibblesAvx2(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count,
                       float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  const Table table(w);
  const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const uint64_t word = LoadFirst(codes + column / 2, Min(4, (left + 1) / 2));
    return table.Get(_mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int32_t>(word)), shifts));
  });
}
void DecodeInt8Avx2(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  DecodeBytes<Int8Codes>(w, row, begin, count, out);
}
void DecodeE4M3Avx2(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  DecodeBytes<E4M3Codes>(w, row, begin, count, out);
}

void DotNibblesAvx2(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                    float* y, int64_t ldy) {
  DotRows<Nibbles>(w, first, rows, input, y, ldy);
}
void DotInt8CodesAvx2(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                      float* y, int64_t ldy) {
  DotRows<Bytes<Int8Codes>>(w, first, rows, input, y, ldy);
}
void DotE4M3Avx2(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                 float* y, int64_t ldy) {
  DotRows<Bytes<E4M3Codes>>(w, first, rows, input, y, ldy);
}

}  // namespace octavo
