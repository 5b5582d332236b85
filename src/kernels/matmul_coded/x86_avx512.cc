// Coded weights on AVX-512: dot products over the codes, for few rows.
//
// Rows of w go by in strips of four, columns in blocks of 128 and chunks of blocks whose inputs
// stay in L1 while all strips pass. A block is eight vectors of 16 weights, each made once for up
// to four rows of x; their inputs lie side by side in CodedInput::arranged.
//
//   nibbles  one load is 16 words of eight codes. Shifted by 4 i, each word has its code i in the
//            low four bits, and vpermps, which reads no more than those, looks up 16 values. Lane d
//            holds columns 8 d to 8 d + 7.
//   int8     eight loads of 16 bytes, widened.
//   E4M3     two loads of 16 words of four codes; lane d holds columns 4 d to 4 d + 3 of 64. One
//            shift moves the second and fourth code of each word to where bf16 has its fields, two
//            the others; one vpternlog then cuts a code out and fills the exponent up. That is
//            wrong for subnormals and zeros, 2^-14 of them: rare enough in weights (one in some
//            thousands) to look for them, and mend the block that has one.
//
// With one or two rows the work is to make the weights, with four it is to multiply: 32 fmas for
// 128 weights, 16 cycles on two ports, which is what memory needs for 100 bytes.
#include "kernels/matmul_coded/kernels.h"
#include "kernels/matmul_coded/x86_avx512_scales.h"

namespace octavo {

namespace {

constexpr int64_t kPartBytes = 64;

// The tile.
constexpr int kRowsOfX = 4;
constexpr int kRowsOfW = 4;

// Where scales go.
enum class Scaling : uint8_t {
  kRow,    // to the row's sum: one scale, no zero points
  kTable,  // nibbles: to the table, where a block has one scale
  kSums,   // to a block's sums; with four rows, whose sums take half the registers, to the weights
  kValues  // to the weights
};

// ---- codes --------------------------------------------------------------------------------------

// 64 bytes of a row: a part of a block.
struct Nibbles {
  static constexpr int64_t kColumnsOfByte = 2;
  static constexpr int64_t kWordColumns = 8;                 // of a lane
  static constexpr int kOrder[] = {0, 1, 2, 3, 4, 5, 6, 7};  // in which vectors are best made
  static constexpr float kScale = 1;                         // what the values below lack
  __m512i words;
  __m512 table;

  Nibbles() = default;
  Nibbles(const CodedMatrix& w, const uint8_t* codes)
      : words(_mm512_loadu_si512(codes)), table(_mm512_loadu_ps(w.table.data())) {}
  void Scale(float scale, float offset) {
    table = _mm512_fmsub_ps(table, _mm512_set1_ps(scale), _mm512_set1_ps(offset));
  }
  __mmask64 Regular(__mmask64 mask) const { return mask; }
  template <bool Mend>
  __m512 Get(int v) const {
    return _mm512_permutexvar_ps(_mm512_srli_epi32(words, static_cast<unsigned>(v) * 4), table);
  }
};

struct Int8Codes {
  static constexpr int64_t kColumnsOfByte = 1;
  static constexpr int64_t kWordColumns = 1;
  static constexpr int kOrder[] = {0, 1, 2, 3};
  static constexpr float kScale = 1;
  const uint8_t* codes;

  Int8Codes() = default;
  Int8Codes(const CodedMatrix&, const uint8_t* bytes) : codes(bytes) {}
  __mmask64 Regular(__mmask64 mask) const { return mask; }
  template <bool Mend>
  __m512 Get(int v) const {
    const auto* bytes = reinterpret_cast<const __m128i*>(codes) + v;
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)));
  }
};

struct E4M3Codes {
  static constexpr int64_t kColumnsOfByte = 1;
  static constexpr int64_t kWordColumns = 4;
  static constexpr int kOrder[] = {3, 1, 2, 0};
  static constexpr float kScale = 256;  // the exponent below is filled up to 112, not to 120
  __m512i words;

  E4M3Codes() = default;
  E4M3Codes(const CodedMatrix&, const uint8_t* codes) : words(_mm512_loadu_si512(codes)) {}
  // The mask, less a bit for each code that is subnormal or zero.
  __mmask64 Regular(__mmask64 mask) const {
    return _mm512_mask_test_epi8_mask(mask, words, _mm512_set1_epi8(0x78));
  }
  template <bool Mend>
  __m512 Get(int v) const {
    const __m512i sign_and_fields = _mm512_set1_epi32(static_cast<int32_t>(0x87F00000));
    const __m512i exponent = _mm512_set1_epi32(0x38000000);
    // Of each half of a word one code: the sign twice or more, and the fields where f32 has them.
    const __m512i codes = _mm512_srai_epi16(v % 2 == 1 ? words : _mm512_slli_epi16(words, 8), 4);
    const __m512i code = v < 2 ? _mm512_slli_epi32(codes, 16) : codes;
    constexpr int kCutAndFill = 0xEA;  // (a & b) | c
    const __m512 value = _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(code, sign_and_fields, exponent, kCutAndFill));
    return Mend ? WithSubnormals(value) : value;
  }

  // Magnitudes from 2^-14 on stay; below, they are 2^-15 + f where 2 f is meant: in both cases the
  // smaller of the magnitude and twice it less 2^-14.
  static __m512 WithSubnormals(__m512 value) {
    const __m512 magnitude = _mm512_abs_ps(value);
    const __m512 meant = _mm512_fmsub_ps(magnitude, _mm512_set1_ps(2), _mm512_set1_ps(0x1p-14F));
    constexpr int kSignOfFirst = 0xE4;  // c ? a : b
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_castps_si512(value), _mm512_castps_si512(_mm512_min_ps(magnitude, meant)),
        _mm512_set1_epi32(static_cast<int32_t>(0x80000000)), kSignOfFirst));
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
  int shift;                  // log2 of the columns of a scale
  const ChunkScales* scales;  // [W]
  const uint8_t* ahead;       // codes that come next, of as many rows
};

// The scales, or offsets, of the lanes of a part that begins at `column`. Small: a block has
// several units.
template <typename Codes, bool Small>
inline __m512 Spread(const Tile& tile, int64_t column, const float* units) {
  const float* first = units + (column >> tile.shift) - ((tile.block * kInputBlock) >> tile.shift);
  if constexpr (!Small) return _mm512_set1_ps(*first);
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  constexpr int kLog2 = Codes::kWordColumns == 8 ? 3 : Codes::kWordColumns == 4 ? 2 : 0;
  const __m512i places =
      _mm512_srli_epi32(_mm512_slli_epi32(lanes, kLog2), static_cast<unsigned>(tile.shift));
  return _mm512_permutexvar_ps(places, _mm512_loadu_ps(first));
}

// Adds a part, which begins at `column`, to sums; x are the inputs of its first vector.
template <typename Codes, Scaling S, bool Small, bool Mend, int X, int W>
inline __attribute__((always_inline)) void AddPart(const Tile& tile, const Codes (&codes)[W],
                                                   int64_t column, const float* x,
                                                   __m512 (&sums)[X][W]) {
  __m512 scales[W];
  if constexpr (S == Scaling::kSums && X == kRowsOfX) {
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j)
      scales[j] = Spread<Codes, Small>(tile, column, tile.scales[j].scales);
  }
#pragma GCC unroll 8
  for (const int v : Codes::kOrder) {
    __m512 values[W];
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      values[j] = codes[j].template Get<Mend>(v);
      if constexpr (S == Scaling::kSums && X == kRowsOfX)
        values[j] = _mm512_mul_ps(values[j], scales[j]);
      if constexpr (S == Scaling::kValues) {
        const int64_t unit =
            ((column + v * kLanes) >> tile.shift) - ((tile.block * kInputBlock) >> tile.shift);
        values[j] = tile.scales[j].Apply(unit, values[j], tile.w.zero_points != nullptr);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < X; ++i) {
      const __m512 row = _mm512_load_ps(x + i * kInputBlock + v * kLanes);
#pragma GCC unroll 4
      for (int j = 0; j < W; ++j) sums[i][j] = _mm512_fmadd_ps(row, values[j], sums[i][j]);
    }
  }
}

// Adds a block to sums; its codes are at `codes`, those of the next row `stride` bytes behind.
template <typename Codes, Scaling S, bool Small, int X, int W>
inline __attribute__((always_inline)) void AddBlock(const Tile& tile, const uint8_t* codes,
                                                    int64_t stride, int64_t block, const float* x,
                                                    __m512 (&sums)[X][W]) {
  constexpr bool kOwnSums = S == Scaling::kSums && X < kRowsOfX;
  constexpr int kPartColumns = kPartBytes * Codes::kColumnsOfByte;
  constexpr int kParts = kInputBlock / kPartColumns;
  const int64_t column = block * kInputBlock;
  __m512 own[X][W] = {};
  const auto scale = [&](int64_t from) {
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      const __m512 scales = Spread<Codes, Small>(tile, from, tile.scales[j].scales);
#pragma GCC unroll 4
      for (int i = 0; i < X; ++i) {
        sums[i][j] = _mm512_fmadd_ps(own[i][j], scales, sums[i][j]);
        own[i][j] = _mm512_setzero_ps();
      }
    }
  };
#pragma GCC unroll 2
  for (int part = 0; part < kParts; ++part) {
    const int64_t from = column + part * kPartColumns;
    Codes of_rows[W];
    __mmask64 regular = ~__mmask64{0};
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      of_rows[j] = Codes(tile.w, codes + j * stride + part * kPartBytes);
      regular = of_rows[j].Regular(regular);
      if constexpr (S == Scaling::kTable) {
        const int64_t unit = (column >> tile.shift) - ((tile.block * kInputBlock) >> tile.shift);
        of_rows[j].Scale(tile.scales[j].scales[unit], tile.scales[j].offsets[unit]);
      }
    }
    auto& into = [&]() -> __m512(&)[X][W] {
      if constexpr (kOwnSums) return own;
      return sums;
    }();
    if (__builtin_expect(regular == ~__mmask64{0}, 1))
      AddPart<Codes, S, Small, false>(tile, of_rows, from, x + part * kPartColumns, into);
    else
      AddPart<Codes, S, Small, true>(tile, of_rows, from, x + part * kPartColumns, into);
    if constexpr (kOwnSums && Small) scale(from);
  }
  if constexpr (kOwnSums && !Small) scale(column);
  if (S != Scaling::kSums || tile.w.zero_points == nullptr) return;
  const float* words = tile.input.word_sums + (block * tile.input.m + tile.i) * kLanes;
#pragma GCC unroll 4
  for (int j = 0; j < W; ++j) {
    const __m512 offset = Spread<Codes, Small>(tile, column, tile.scales[j].offsets);
#pragma GCC unroll 4
    for (int i = 0; i < X; ++i)
      sums[i][j] = _mm512_fnmadd_ps(_mm512_loadu_ps(words + i * kLanes), offset, sums[i][j]);
  }
}

// Where k ends in a block: the codes of W rows, with zeros behind.
template <typename Codes, int W>
struct LastBlock {
  static constexpr int64_t kBytes = kInputBlock / Codes::kColumnsOfByte;
  alignas(64) uint8_t codes[W * kBytes];

  LastBlock(const uint8_t* from, int64_t stride, int64_t columns) {
    const int64_t bytes = (columns + Codes::kColumnsOfByte - 1) / Codes::kColumnsOfByte;
    for (int j = 0; j < W; ++j) {
      for (int64_t at = 0; at < kBytes; at += 64) {
        const __mmask64 mask = FirstBytes(Max(bytes - at, 0));
        _mm512_store_si512(codes + j * kBytes + at,
                           _mm512_maskz_loadu_epi8(mask, from + j * stride + at));
      }
    }
  }
};

template <typename Codes, Scaling S, bool Small, int X, int W>
void DotTile(const Tile& tile, float* y, int64_t ldy) {
  const CodedMatrix& w = tile.w;
  constexpr int64_t kBlockBytes = kInputBlock / Codes::kColumnsOfByte;
  const uint8_t* codes = w.codes + tile.row * w.row_bytes + tile.block * kBlockBytes;
  const uint8_t* ahead = tile.ahead;
  const float* x = tile.input.arranged + (tile.block * tile.input.m + tile.i) * kInputBlock;
  const int64_t whole = Min(tile.end, w.k / kInputBlock);
  // Measured: a few percent of the bandwidth either way.
  constexpr auto kHint = kBlockBytes > 64 ? _MM_HINT_T0 : _MM_HINT_T1;
  __m512 sums[X][W] = {};
  int64_t block = tile.block;
  for (; block < whole; ++block) {
    // The processor does not foresee the jump to the next rows.
#pragma GCC unroll 4
    for (int j = 0; j < W; ++j) {
      const auto* line = reinterpret_cast<const char*>(ahead + j * w.row_bytes);
      _mm_prefetch(line, kHint);
      if constexpr (kBlockBytes > 64) _mm_prefetch(line + 64, kHint);
    }
    AddBlock<Codes, S, Small>(tile, codes, w.row_bytes, block, x, sums);
    codes += kBlockBytes;
    ahead += kBlockBytes;
    x += tile.input.m * kInputBlock;
  }
  if (block < tile.end) {
    const LastBlock<Codes, W> last(codes, w.row_bytes, w.k - block * kInputBlock);
    AddBlock<Codes, S, Small>(tile, last.codes, kBlockBytes, block, x, sums);
  }
  const __mmask8 lanes = (1U << W) - 1;
  const bool scales_row = S == Scaling::kRow && tile.end == tile.input.blocks;
#pragma GCC unroll 4
  for (int i = 0; i < X; ++i) {
    const __m512 zero = _mm512_setzero_ps();
    __m128 each =
        SumEach(sums[i][0], W > 1 ? sums[i][W > 1 ? 1 : 0] : zero,
                W > 2 ? sums[i][W > 2 ? 2 : 0] : zero, W > 2 ? sums[i][W > 2 ? 3 : 0] : zero);
    float* out = y + i * ldy;
    if (tile.block > 0) each = _mm_add_ps(each, _mm_maskz_loadu_ps(lanes, out));
    if (scales_row) {
      const ChunkScales* scales = tile.scales;
      each = _mm_mul_ps(
          each, _mm_setr_ps(scales[0].scales[0], scales[W > 1 ? 1 : 0].scales[0],
                            scales[W > 2 ? 2 : 0].scales[0], scales[W > 2 ? 3 : 0].scales[0]));
    }
    _mm_mask_storeu_ps(out, lanes, each);
  }
}

// W rows of w times all rows of x.
template <typename Codes, Scaling S, bool Small, int W>
void DotStrip(Tile tile, float* y, int64_t ldy) {
  const auto multiply = [&](auto dot_tile, int64_t rows) {
    for (; tile.i + rows <= tile.input.m; tile.i += rows) dot_tile(tile, y + tile.i * ldy, ldy);
  };
  multiply(DotTile<Codes, S, Small, kRowsOfX, W>, kRowsOfX);
  multiply(DotTile<Codes, S, Small, 2, W>, 2);
  multiply(DotTile<Codes, S, Small, 1, W>, 1);
}

template <typename Codes, Scaling S, bool Small>
void DotOf(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input, float* y,
           int64_t ldy) {
  const Units units = UnitsOf(w);
  // The inputs of a chunk take 16 KiB, of more than four rows up to 32.
  const int64_t chunk = Max(kMostChunkBlocks / input.m, kMostChunkBlocks / kRowsOfX);
  ChunkScales scales[kRowsOfW];
  for (int64_t block = 0; block < input.blocks; block += chunk) {
    const int64_t end = Min(block + chunk, input.blocks);
    for (int64_t j = 0; j < rows;) {
      const int64_t count = rows - j >= kRowsOfW ? kRowsOfW : 1;
      // The scale of a row is wanted once its sum is complete.
      const bool fill = S != Scaling::kRow || end == input.blocks;
      for (int64_t r = 0; fill && r < count; ++r)
        scales[r].Fill(w, first + j + r, block * kInputBlock, Min(end * kInputBlock, w.k), units,
                       Codes::kScale, Small);
      const bool last = j + count == rows;
      const int64_t next_row = last && end < input.blocks ? first : first + j + count;
      const int64_t next_block = !last ? block : end < input.blocks ? end : 0;
      const Tile tile{.w = w,
                      .input = input,
                      .row = first + j,
                      .i = 0,
                      .block = block,
                      .end = end,
                      .shift = units.shift,
                      .scales = scales,
                      .ahead = w.codes + next_row * w.row_bytes +
                               next_block * kInputBlock / Codes::kColumnsOfByte};
      if (count == kRowsOfW)
        DotStrip<Codes, S, Small, kRowsOfW>(tile, y + j, ldy);
      else
        DotStrip<Codes, S, Small, 1>(tile, y + j, ldy);
      j += count;
    }
  }
}

// What the units of w allow.
bool HasRowScales(const CodedMatrix& w) {
  return w.unit_columns >= w.k && w.zero_points == nullptr;
}
bool HasSmallUnits(const CodedMatrix& w) {
  return w.unit_columns < w.k && w.unit_columns % kInputBlock != 0;
}

}  // namespace

void DotNibblesAvx512(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                      float* y, int64_t ldy) {
  if (HasRowScales(w)) return DotOf<Nibbles, Scaling::kRow, false>(w, first, rows, input, y, ldy);
  if (HasSmallUnits(w)) return DotOf<Nibbles, Scaling::kSums, true>(w, first, rows, input, y, ldy);
  DotOf<Nibbles, Scaling::kTable, false>(w, first, rows, input, y, ldy);
}

void DotInt8CodesAvx512(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                        float* y, int64_t ldy) {
  if (HasRowScales(w)) return DotOf<Int8Codes, Scaling::kRow, false>(w, first, rows, input, y, ldy);
  if (HasSmallUnits(w))
    return DotOf<Int8Codes, Scaling::kValues, true>(w, first, rows, input, y, ldy);
  DotOf<Int8Codes, Scaling::kSums, false>(w, first, rows, input, y, ldy);
}

void DotE4M3Avx512(const CodedMatrix& w, int64_t first, int64_t rows, const CodedInput& input,
                   float* y, int64_t ldy) {
  if (HasRowScales(w)) return DotOf<E4M3Codes, Scaling::kRow, false>(w, first, rows, input, y, ldy);
  if (HasSmallUnits(w))
    return DotOf<E4M3Codes, Scaling::kSums, true>(w, first, rows, input, y, ldy);
  DotOf<E4M3Codes, Scaling::kSums, false>(w, first, rows, input, y, ldy);
}

}  // namespace octavo
