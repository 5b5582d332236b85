// Coded weights on AVX-512: dot products over the codes for few rows, and decoding for panels.
//
// Dot products go through blocks of 128 columns. A block of codes is eight vectors of 16 weights;
// two or four rows of w at a time, each vector made once for up to four rows of x:
//
//   nibbles  one load is 16 words of eight codes. Shifted by 4 i, each word has its code i in the
//            low four bits, and vpermps, which reads no more than those, looks up 16 values. Their
//            inputs lie side by side in CodedInput::arranged. Lane d holds columns 8 d to 8 d + 7.
//   bytes    eight loads, widened. E4M3 by way of f16: the same fields, eight binades lower, also
//            of subnormals, which f32 arithmetic would take ages for.
//
// Where every lane of a block's sum belongs to one unit, the scale is applied to the sum: one
// multiplication in eight. The scales of bytes with smaller units go to the weights.
#include "kernels/matmul_coded/kernels.h"
#include "kernels/x86_avx512_math.h"

namespace octavo {

namespace {

constexpr int64_t kLanes = 16;
constexpr int kVectors = kInputBlock / kLanes;  // of a block
constexpr int64_t kWordColumns = 8;             // of a lane where nibbles are multiplied

// The tile.
constexpr int kRowsOfX = 4;
constexpr int kRowsOfW = 4;

// Blocks whose scales are widened at a time: for four rows they take 8 KiB of L1 at most.
constexpr int64_t kChunkBlocks = 32;

// f16 bits of E4M3's fields stand for 2^-8 times the value.
constexpr float kE4M3AsF16 = 256;

int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

inline __mmask64 FirstBytes(int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

inline __m512 WidenE4M3(__m256i f16) {
  return _mm512_mul_ps(_mm512_cvtph_ps(f16), _mm512_set1_ps(kE4M3AsF16));
}

// 16 or 32 E4M3 bytes, sign-extended to words, to f16 of the same fields.
inline __m512i E4M3ToF16(__m512i words) {
  return _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(-0x4080));
}
inline __m256i E4M3ToF16(__m256i words) {
  return _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(-0x4080));
}

// ---- scales -------------------------------------------------------------------------------------

// Scales [unit, unit + count), count at most 16, times the multiplier; the rest zeros. None is NaN.
__m512 LoadScales(const CodedMatrix& w, int64_t unit, int64_t count) {
  const auto* bytes = static_cast<const uint8_t*>(w.scales);
  const __mmask16 lanes = FirstLanes(count);
  __m512 scales = _mm512_setzero_ps();
  switch (w.scale_format) {
    case ScaleFormat::kF32:
      scales = _mm512_maskz_loadu_ps(lanes, bytes + unit * 4);
      break;
    case ScaleFormat::kBf16:
      scales = WidenBf16(_mm256_maskz_loadu_epi16(lanes, bytes + unit * 2));
      break;
    case ScaleFormat::kE4M3:
      scales =
          WidenE4M3(E4M3ToF16(_mm256_cvtepi8_epi16(_mm_maskz_loadu_epi8(lanes, bytes + unit))));
      break;
    case ScaleFormat::kE8M0: {
      const __m512i exponents = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(lanes, bytes + unit));
      // Code 0 is 2^-127, a subnormal.
      const __m512i bits = _mm512_mask_mov_epi32(_mm512_slli_epi32(exponents, 23),
                                                 _mm512_testn_epi32_mask(exponents, exponents),
                                                 _mm512_set1_epi32(0x00400000));
      scales = _mm512_maskz_mov_ps(lanes, _mm512_castsi512_ps(bits));
      break;
    }
  }
  return _mm512_mul_ps(scales, _mm512_set1_ps(w.multiplier));
}

__m512 LoadZeroPoints(const CodedMatrix& w, int64_t unit, int64_t count) {
  const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(count), w.zero_points + unit);
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

// How the columns of a chunk find their scales: element (column >> shift), less that of the first.
struct Units {
  int shift;         // log2 of the columns of a scale
  int64_t repeated;  // 0, or: units are no power of two, and each scale stands once for each such
                     // run of columns
};

Units UnitsOf(const CodedMatrix& w, int64_t smallest) {
  if (w.unit_columns >= w.k) return {62, 0};
  const bool power_of_two = (w.unit_columns & (w.unit_columns - 1)) == 0;
  const auto columns = static_cast<uint64_t>(power_of_two ? w.unit_columns : smallest);
  return {__builtin_ctzll(columns), power_of_two ? 0 : smallest};
}

// The scales of some columns of a row of w, and scale * zero point, with zeros behind.
struct ChunkScales {
  // As many as the smallest units of a chunk, and what vectors read behind them.
  static constexpr int64_t kMost = kChunkBlocks * kInputBlock / kWordColumns + kLanes;
  alignas(64) float scales[kMost];
  alignas(64) float offsets[kMost];

  // `factor` is that between values and codes.
  void Fill(const CodedMatrix& w, int64_t row, int64_t begin, int64_t end, const Units& units,
            float factor) {
    const int64_t row_units = row / w.unit_rows * w.scale_columns;
    const int64_t first = begin >> units.shift;
    if (units.repeated != 0) return FillRepeated(w, row_units, begin, end, units.repeated, factor);
    const int64_t count = ((end - 1) >> units.shift) + 1 - first;
    for (int64_t i = 0; i < count + kLanes; i += kLanes) {
      const int64_t unit = row_units + first + i;
      const int64_t valid = count > i ? count - i : 0;
      const __m512 vector = LoadScales(w, unit, valid);
      _mm512_store_ps(scales + i, _mm512_mul_ps(vector, _mm512_set1_ps(factor)));
      if (w.zero_points != nullptr)
        _mm512_store_ps(offsets + i, _mm512_mul_ps(vector, LoadZeroPoints(w, unit, valid)));
    }
  }

  // (value - zero point) * scale, both of one unit.
  __m512 Apply(int64_t unit, __m512 value, bool zero_points) const {
    const __m512 scale = _mm512_set1_ps(scales[unit]);
    if (!zero_points) return _mm512_mul_ps(value, scale);
    return _mm512_fmsub_ps(value, scale, _mm512_set1_ps(offsets[unit]));
  }

 private:
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

// ---- codes --------------------------------------------------------------------------------------

// Two vectors of weights of a block, as numbers without scale.
struct Pair {
  __m512 first;
  __m512 second;
};

struct Nibbles {
  static constexpr int64_t kColumnsOfByte = 2;
  static constexpr int64_t kSmallestUnit = kWordColumns;
  static constexpr float kScale = 1;  // what the values below lack
  __m512i words;
  __m512 table;

  // A whole block; `left` columns and zeros.
  Nibbles(const CodedMatrix& w, const uint8_t* codes)
      : words(_mm512_loadu_si512(codes)), table(_mm512_loadu_ps(w.table.data())) {}
  Nibbles(const CodedMatrix& w, const uint8_t* codes, int64_t left)
      : words(_mm512_maskz_loadu_epi8(FirstBytes((left + 1) / 2), codes)),
        table(_mm512_loadu_ps(w.table.data())) {}
  Pair Get(int pair) const {
    const unsigned shift = static_cast<unsigned>(pair) * 8;
    return {_mm512_permutexvar_ps(_mm512_srli_epi32(words, shift), table),
            _mm512_permutexvar_ps(_mm512_srli_epi32(words, shift + 4), table)};
  }
  // The unit, from the block's first on, of each lane.
  static __m512i Places(int shift) {
    const __m512i column =
        _mm512_setr_epi32(0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120);
    return _mm512_srli_epi32(column, static_cast<unsigned>(shift));
  }
};

struct Bytes {
  static constexpr int64_t kColumnsOfByte = 1;
  static constexpr int64_t kSmallestUnit = kLanes;
  const uint8_t* codes;
  int64_t left;

  Bytes(const CodedMatrix&, const uint8_t* bytes, int64_t count = kInputBlock)
      : codes(bytes), left(count) {}
  // 32 bytes, those behind the row zeros.
  __m256i Load(int pair) const {
    if (left >= kInputBlock)
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * pair));
    const int64_t count = left - 32 * pair;
    const auto mask = static_cast<__mmask32>(FirstBytes(count < 0 ? 0 : Min(count, 32)));
    return _mm256_maskz_loadu_epi8(mask, codes + 32 * pair);
  }
  static __m512i Places(int) { return _mm512_setzero_si512(); }
};

struct Int8Codes : Bytes {
  using Bytes::Bytes;
  static constexpr float kScale = 1;
  Pair Get(int pair) const {
    const __m256i bytes = Load(pair);
    const __m512i first = _mm512_cvtepi8_epi32(_mm256_castsi256_si128(bytes));
    const __m512i second = _mm512_cvtepi8_epi32(_mm256_extracti128_si256(bytes, 1));
    return {_mm512_cvtepi32_ps(first), _mm512_cvtepi32_ps(second)};
  }
};

struct E4M3Codes : Bytes {
  using Bytes::Bytes;
  static constexpr float kScale = kE4M3AsF16;
  Pair Get(int pair) const {
    const __m512i f16 = E4M3ToF16(_mm512_cvtepi8_epi16(Load(pair)));
    return {_mm512_cvtph_ps(_mm512_castsi512_si256(f16)),
            _mm512_cvtph_ps(_mm512_extracti64x4_epi64(f16, 1))};
  }
};

// ---- dot products -------------------------------------------------------------------------------

// Rows [row, row + W) of w times rows [i, i + X) of x, columns of blocks [block, end).
struct Tile {
  const CodedMatrix& w;
  const CodedInput& input;
  int64_t row;
  int64_t i;
  int64_t block;
  int64_t end;
  Units units;
  const ChunkScales* scales;  // [W]
};

// Sums of a tile. Fine: units are smaller than a block of bytes, and scales go to the weights. So
// they do with four rows of x: registers have no room for sums of blocks, and without them
// a tile has the 16 chains that hide the latency of additions.
template <typename Codes, bool Fine, int X, int W>
inline __attribute__((always_inline)) void Multiply(const Tile& tile, __m512 (&sums)[X][W]) {
  const CodedMatrix& w = tile.w;
  const int64_t row_bytes = w.row_bytes;
  const int64_t width = tile.input.blocks * kInputBlock;
  const int shift = tile.units.shift;
  const int64_t first = (tile.block * kInputBlock) >> shift;
  const __m512i places = Codes::Places(shift);
  const bool zero_points = w.zero_points != nullptr;
  const ChunkScales* scales = tile.scales;
  // make(j) gives the codes of row j.
  constexpr bool kScaleValues = Fine || X > 2;
  const auto step = [&](int64_t block, const float* x, const auto& make) {
    __m512 block_sums[X][W] = {};
    const int64_t column = block * kInputBlock;
    const int64_t unit = (column >> shift) - first;
    __m512 block_scales[W];
    if constexpr (!Fine) {
#pragma GCC unroll 4
      for (int j = 0; j < W; ++j)
        block_scales[j] = _mm512_permutexvar_ps(places, _mm512_loadu_ps(scales[j].scales + unit));
    }
    const auto multiply = [&](int v, const __m512(&values)[W]) {
#pragma GCC unroll 4
      for (int i = 0; i < X; ++i) {
        const __m512 row = _mm512_load_ps(x + i * width + v * kLanes);
#pragma GCC unroll 4
        for (int j = 0; j < W; ++j) {
          __m512& sum = kScaleValues ? sums[i][j] : block_sums[i][j];
          sum = _mm512_fmadd_ps(row, values[j], sum);
        }
      }
    };
#pragma GCC unroll 4
    for (int p = 0; p < kVectors / 2; ++p) {
      __m512 values[2][W];
#pragma GCC unroll 4
      for (int j = 0; j < W; ++j) {
        const Pair pair = make(j).Get(p);
        values[0][j] = pair.first;
        values[1][j] = pair.second;
      }
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        if constexpr (Fine) {
          const int64_t at = ((column + (2 * p + v) * kLanes) >> shift) - first;
#pragma GCC unroll 4
          for (int j = 0; j < W; ++j) values[v][j] = scales[j].Apply(at, values[v][j], zero_points);
        } else if constexpr (kScaleValues) {
#pragma GCC unroll 4
          for (int j = 0; j < W; ++j) values[v][j] = _mm512_mul_ps(values[v][j], block_scales[j]);
        }
        multiply(2 * p + v, values[v]);
      }
    }
    if constexpr (Fine) return;
    if constexpr (!kScaleValues) {
#pragma GCC unroll 4
      for (int j = 0; j < W; ++j) {
#pragma GCC unroll 4
        for (int i = 0; i < X; ++i)
          sums[i][j] = _mm512_fmadd_ps(block_sums[i][j], block_scales[j], sums[i][j]);
      }
    }
    if (!zero_points) return;
    const float* words = tile.input.word_sums + (tile.i * tile.input.blocks + block) * kLanes;
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      const __m512 offset =
          _mm512_permutexvar_ps(places, _mm512_loadu_ps(scales[j].offsets + unit));
#pragma GCC unroll 4
      for (int i = 0; i < X; ++i) {
        const __m512 row = _mm512_loadu_ps(words + i * tile.input.blocks * kLanes);
        sums[i][j] = _mm512_fnmadd_ps(row, offset, sums[i][j]);
      }
    }
  };
  constexpr int64_t kBlockBytes = kInputBlock / Codes::kColumnsOfByte;
  const uint8_t* codes = w.codes + tile.row * row_bytes + tile.block * kBlockBytes;
  const float* x = tile.input.arranged + tile.i * width + tile.block * kInputBlock;
  const int64_t whole = Min(tile.end, w.k / kInputBlock);
  int64_t block = tile.block;
  for (; block < whole; ++block) {
    // The next tile's rows: the processor does not foresee the jump to them.
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      const auto* ahead = reinterpret_cast<const char*>(codes + (W + j) * row_bytes);
      _mm_prefetch(ahead, _MM_HINT_T1);
      if constexpr (Codes::kColumnsOfByte == 1) _mm_prefetch(ahead + 64, _MM_HINT_T1);
    }
    step(block, x, [&](int j) { return Codes(w, codes + j * row_bytes); });
    codes += kBlockBytes;
    x += kInputBlock;
  }
  if (block == tile.end) return;
  step(block, x, [&](int j) { return Codes(w, codes + j * row_bytes, w.k - block * kInputBlock); });
}

template <typename Codes, bool Fine, int X, int W>
void DotTile(const Tile& tile, bool add, float* y, int64_t ldy) {
  __m512 sums[X][W] = {};
  Multiply<Codes, Fine>(tile, sums);
#pragma GCC unroll 4
  for (int i = 0; i < X; ++i) {
    const __m512 zero = _mm512_setzero_ps();
    const __m128 each =
        SumEach(sums[i][0], W > 1 ? sums[i][W > 1 ? 1 : 0] : zero,
                W > 2 ? sums[i][W > 2 ? 2 : 0] : zero, W > 2 ? sums[i][W > 2 ? 3 : 0] : zero);
    const __mmask8 lanes = (1U << W) - 1;
    float* out = y + i * ldy;
    const __m128 before = add ? _mm_maskz_loadu_ps(lanes, out) : _mm_setzero_ps();
    _mm_mask_storeu_ps(out, lanes, _mm_add_ps(before, each));
  }
}

// W rows of w times all rows of x, a chunk of columns at a time.
template <typename Codes, bool Fine, int W>
void DotStrip(const CodedMatrix& w, int64_t row, const CodedInput& input, float* y, int64_t ldy) {
  const Units units = UnitsOf(w, Codes::kSmallestUnit);
  ChunkScales scales[W];
  for (int64_t block = 0; block < input.blocks; block += kChunkBlocks) {
    const int64_t end = Min(block + kChunkBlocks, input.blocks);
    for (int j = 0; j < W; ++j)
      scales[j].Fill(w, row + j, block * kInputBlock, Min(end * kInputBlock, w.k), units,
                     Codes::kScale);
    Tile tile{w, input, row, 0, block, end, units, scales};
    const bool add = block > 0;
    const auto multiply = [&](auto dot_tile, int64_t rows) {
      for (; tile.i + rows <= input.m; tile.i += rows) dot_tile(tile, add, y + tile.i * ldy, ldy);
    };
    multiply(DotTile<Codes, Fine, kRowsOfX, W>, kRowsOfX);
    multiply(DotTile<Codes, Fine, 2, W>, 2);
    multiply(DotTile<Codes, Fine, 1, W>, 1);
  }
}

template <typename Codes, bool Fine>
void DotOf(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input, float* y,
           int64_t ldy) {
  int64_t j = 0;
  for (; j + kRowsOfW <= rows; j += kRowsOfW)
    DotStrip<Codes, Fine, kRowsOfW>(w, first + j, input, y + j, ldy);
  for (; j < rows; ++j) DotStrip<Codes, Fine, 1>(w, first + j, input, y + j, ldy);
}

template <typename Codes>
void DotBytes(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input, float* y,
              int64_t ldy) {
  const bool fine = w.unit_columns < w.k && w.unit_columns % kInputBlock != 0;
  if (fine) return DotOf<Codes, true>(w, first, rows, input, y, ldy);
  DotOf<Codes, false>(w, first, rows, input, y, ldy);
}

// ---- decoding -----------------------------------------------------------------------------------

// out[0, count) = (values - zero point) * scale of columns [begin, begin + count), 16 at a time;
// groups are multiples of 16. load(column, lanes) gives the values.
template <typename Load>
inline void Decode(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out,
                   const Load& load) {
  const int64_t row_units = row / w.unit_rows * w.scale_columns;
  int64_t unit_end = begin;
  __m512 scale = _mm512_setzero_ps();
  __m512 zero_point = _mm512_setzero_ps();
  for (int64_t column = begin; column < begin + count; column += kLanes) {
    if (column == unit_end) {
      const int64_t in_row = column / w.unit_columns;
      unit_end = w.unit_columns >= w.k ? w.k : (in_row + 1) * w.unit_columns;
      scale = _mm512_set1_ps(ScaleAt(w, row_units + in_row));
      if (w.zero_points != nullptr)
        zero_point = _mm512_set1_ps(static_cast<float>(w.zero_points[row_units + in_row]));
    }
    const int64_t left = begin + count - column;
    const __m512 value = load(column, left);
    _mm512_mask_storeu_ps(out + column - begin, FirstLanes(left),
                          _mm512_mul_ps(_mm512_sub_ps(value, zero_point), scale));
  }
}

}  // namespace

void DecodeNibblesAvx512(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count,
                         float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  const __m512 table = _mm512_loadu_ps(w.table.data());
  const __m512i shifts =
      _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
  const __m512i words = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const __mmask16 bytes = FirstLanes((left < kLanes ? left + 1 : kLanes) / 2);
    const __m128i eight = _mm_maskz_loadu_epi8(bytes, codes + column / 2);
    const __m512i spread = _mm512_permutexvar_epi32(words, _mm512_castsi128_si512(eight));
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(spread, shifts), table);
  });
}

void DecodeInt8Avx512(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(left), codes + column);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
  });
}

void DecodeE4M3Avx512(const CodedMatrix& w, int64_t row, int64_t begin, int64_t count, float* out) {
  const uint8_t* codes = w.codes + row * w.row_bytes;
  Decode(w, row, begin, count, out, [&](int64_t column, int64_t left) {
    const __m128i bytes = _mm_maskz_loadu_epi8(FirstLanes(left), codes + column);
    return WidenE4M3(E4M3ToF16(_mm256_cvtepi8_epi16(bytes)));
  });
}

void DotNibblesAvx512(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                      float* y, int64_t ldy) {
  DotOf<Nibbles, false>(w, first, rows, input, y, ldy);
}
void DotInt8CodesAvx512(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                        float* y, int64_t ldy) {
  DotBytes<Int8Codes>(w, first, rows, input, y, ldy);
}
void DotE4M3Avx512(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                   float* y, int64_t ldy) {
  DotBytes<E4M3Codes>(w, first, rows, input, y, ldy);
}

}  // namespace octavo
