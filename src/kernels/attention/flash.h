// Attention with an online softmax (FlashAttention-2, Dao 2023) in f32, for any vector type: what
// the instruction-set files of this folder share. Only for them.
//
// Query vectors meet blocks of 64 keys. Many vectors: a block is packed once for all of them, both
// products then run through one register-tiled loop C[M, N] (+)= A[M, K] B[K, N] whose B rows are
// whole vectors:
//
//   S [M, 64]   = Q [M, D]  K^T [D, 64]     K^T: the block's keys, transposed while widened to f32
//   P           = exp(S - maximum), masked by position
//   O [M, D']   = O * exp(old maximum - maximum) + P [M, 64]  V [64, D']
//
// D' is D rounded up to a vector; Q is scaled when it is gathered, zeros fill it up to D'. Missing
// keys have zeros in K^T and V and probability zero. For D = 64, K^T and V are 16 KiB each and stay
// in L1; S, Q and O of 96 vectors are 24 KiB each and stream from L2, each value feeding several
// FMAs.
//
// Few vectors (generation) are not worth the packing: they take dot products with the keys, and
// weighted sums of the values, as those are stored.
#pragma once

#include "kernels/attention/kernels.h"

namespace octavo {
namespace {  // NOLINT(google-build-namespaces): one copy for each instruction set

// V is a struct of static functions on V::Floats, V::kLanes of them (see x86_avx512.cc), and
//   kRows, kVectors  the register tile of the packed products
//   kFewRows         query vectors that share the loads of four keys or vectors of a value
// Loads and stores of `count` lanes touch no memory behind them and give zeros.

constexpr int64_t kBlockKeys = 64;

// Query vectors up to which nothing is packed.
constexpr int64_t kFewVectors = 8;

// How many tokens ahead keys and values are asked for: they lie far apart, so the processor does
// not foresee them.
constexpr int64_t kTokensAhead = 16;

inline int64_t Min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

inline int64_t Max(int64_t a, int64_t b) {
  return a > b ? a : b;
}

inline void Prefetch(const void* address) {
  __builtin_prefetch(address, 0, 2);
}

struct Bf16 {
  uint16_t bits;
};

struct E4M3 {
  uint8_t bits;
};

struct Int8 {
  int8_t value;
};

template <typename V>
int64_t RoundUp(int64_t a) {
  return (a + V::kLanes - 1) / V::kLanes * V::kLanes;
}

// The parts of a tile's scratch, each aligned to a cache line.
template <typename V>
struct Scratch {
  Scratch(float* memory, int64_t m, int64_t dim)
      : queries(memory),
        keys(queries + m * RoundUp<V>(dim)),
        values(keys + kBlockKeys * RoundUp<V>(dim)),
        scores(values + kBlockKeys * RoundUp<V>(dim)),
        sums(scores + m * kBlockKeys) {}
  static int64_t Floats(int64_t m, int64_t dim) {
    return 2 * (m + kBlockKeys) * RoundUp<V>(dim) + m * kBlockKeys;
  }

  float* queries;  // [M, D']
  float* keys;     // [D, 64]
  float* values;   // [64, D']
  float* scores;   // [M, 64]
  float* sums;     // [M, D']
};

template <typename V>
void GatherQueries(const AttentionTile& tile, float* dst) {
  const int64_t dim = tile.head_dim;
  const typename V::Floats scale = V::Set(tile.scale);
  for (int64_t row = 0; row < tile.rows; ++row) {
    for (int64_t head = 0; head < tile.heads; ++head) {
      const float* src = tile.q + row * tile.ldq + head * dim;
      for (int64_t d = 0; d < dim; d += V::kLanes, dst += V::kLanes) {
        V::Store(dst, V::Multiply(V::Load(src + d, dim - d), scale));
      }
    }
  }
}

// ---- many vectors ------------------------------------------------------------------------------

// `count` keys transposed to [D, 64], zeros behind them up to a whole vector. Asks for the next
// block meanwhile.
template <typename V, typename T>
void PackKeys(const AttentionTile& tile, const T* keys, int64_t count, float* dst) {
  const int64_t stride = tile.token_stride;
  for (int64_t key = 0; key < count; key += V::kLanes) {
    const int64_t present = Min(V::kLanes, count - key);
    for (int64_t d = 0; d < tile.head_dim; d += V::kLanes) {
      const T* src = keys + key * stride + d;
      const T* next = src + kBlockKeys * stride;
      typename V::Floats rows[V::kLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < V::kLanes; ++i) {
        rows[i] = V::Load(src, i < present ? tile.head_dim - d : 0);
        Prefetch(next);
        if (i + 1 < present) src += stride;
        next += stride;
      }
      V::Transpose(rows);
      const int64_t depth = Min(V::kLanes, tile.head_dim - d);
      for (int64_t i = 0; i < depth; ++i) V::Store(dst + (d + i) * kBlockKeys + key, rows[i]);
    }
  }
}

// `count` values widened to [count, D'].
template <typename V, typename T>
void PackValues(const AttentionTile& tile, const T* values, int64_t count, float* dst) {
  const int64_t width = RoundUp<V>(tile.head_dim);
  for (int64_t key = 0; key < count; ++key) {
    const T* src = values + key * tile.token_stride;
    for (int64_t d = 0; d < width; d += V::kLanes) {
      V::Store(dst + key * width + d, V::Load(src + d, tile.head_dim - d));
      Prefetch(src + kBlockKeys * tile.token_stride + d);
    }
  }
}

// Rows x (kLanes * Vectors) of C; C is read first when `accumulate` is set.
template <typename V, int Rows, int Vectors>
void MultiplyTile(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t k,
                  bool accumulate, float* c, int64_t ldc) {
  typename V::Floats sums[Rows][Vectors];
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[r][v] = accumulate ? V::Load(c + r * ldc + V::kLanes * v) : V::Set(0);
    }
  }
  for (int64_t l = 0; l < k; ++l) {
    typename V::Floats row[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) row[v] = V::Load(b + l * ldb + V::kLanes * v);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const typename V::Floats factor = V::Set(a[r * lda + l]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        sums[r][v] = V::MultiplyAdd(factor, row[v], sums[r][v]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) V::Store(c + r * ldc + V::kLanes * v, sums[r][v]);
  }
}

template <typename V, int Vectors>
void MultiplyStrip(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t m, int64_t k,
                   bool accumulate, float* c, int64_t ldc) {
  constexpr decltype(&MultiplyTile<V, 1, Vectors>) kTileOfRows[] = {nullptr,
                                                                    MultiplyTile<V, 1, Vectors>,
                                                                    MultiplyTile<V, 2, Vectors>,
                                                                    MultiplyTile<V, 3, Vectors>,
                                                                    MultiplyTile<V, 4, Vectors>,
                                                                    MultiplyTile<V, 5, Vectors>,
                                                                    MultiplyTile<V, 6, Vectors>};
  for (int64_t i = 0; i < m; i += V::kRows) {
    kTileOfRows[Min(m - i, V::kRows)](a + i * lda, lda, b, ldb, k, accumulate, c + i * ldc, ldc);
  }
}

// C [m, n] (+)= A [m, k] B [k, n]; rows of B and C aligned, n a multiple of kLanes.
template <typename V>
void Multiply(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t m, int64_t n,
              int64_t k, bool accumulate, float* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + V::kLanes * V::kVectors <= n; j += V::kLanes * V::kVectors) {
    MultiplyStrip<V, V::kVectors>(a, lda, b + j, ldb, m, k, accumulate, c + j, ldc);
  }
  for (; j < n; j += V::kLanes) {
    MultiplyStrip<V, 1>(a, lda, b + j, ldb, m, k, accumulate, c + j, ldc);
  }
}

// ---- few vectors -------------------------------------------------------------------------------

// Scores of Rows query vectors with four keys, each `stride` elements behind the one before;
// missing keys repeat one that is there.
template <typename V, typename T, int Rows>
void DotFourKeys(const float* queries, int64_t width, const T* (&keys)[4], int64_t ahead,
                 int64_t dim, float* scores) {
  typename V::Floats sums[Rows][4];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[r][i] = V::Set(0);
  }
  for (int64_t d = 0; d < dim; d += V::kLanes) {
    typename V::Floats key[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      key[i] = V::Load(keys[i] + d, dim - d);
      Prefetch(keys[i] + ahead + d);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const typename V::Floats query = V::Load(queries + r * width + d);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sums[r][i] = V::MultiplyAdd(query, key[i], sums[r][i]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
    V::StoreSums(scores + r * kBlockKeys, sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
  }
}

// Query vectors [begin, end) of a tile.
struct Vectors {
  int64_t begin;
  int64_t end;
};

// S = Q K^T for `count` keys as they are stored.
template <typename V, typename T>
void ScoreFew(const AttentionTile& tile, const T* keys, int64_t count, Vectors vectors,
              const Scratch<V>& scratch) {
  const int64_t width = RoundUp<V>(tile.head_dim);
  constexpr decltype(&DotFourKeys<V, T, 1>) kDotOfRows[] = {
      nullptr, DotFourKeys<V, T, 1>, DotFourKeys<V, T, 2>, DotFourKeys<V, T, 3>,
      DotFourKeys<V, T, 4>};
  for (int64_t key = 0; key < count; key += 4) {
    const T* four[4];
    for (int64_t i = 0; i < 4; ++i) four[i] = keys + Min(key + i, count - 1) * tile.token_stride;
    for (int64_t v = vectors.begin; v < vectors.end; v += V::kFewRows) {
      kDotOfRows[Min(vectors.end - v, V::kFewRows)](scratch.queries + v * width, width, four,
                                                    kTokensAhead * tile.token_stride, tile.head_dim,
                                                    scratch.scores + v * kBlockKeys + key);
    }
  }
}

// Rows sums over kLanes * Width of the dimensions, from d on: += P V.
template <typename V, typename T, int Rows, int Width>
void AddValues(const AttentionTile& tile, const T* values, int64_t count, int64_t d,
               const float* scores, float* sums, int64_t width) {
  typename V::Floats sum[Rows][Width];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Width; ++v) sum[r][v] = V::Load(sums + r * width + V::kLanes * v);
  }
  for (int64_t key = 0; key < count; ++key) {
    const T* value = values + key * tile.token_stride + d;
    typename V::Floats row[Width];
#pragma GCC unroll 4
    for (int v = 0; v < Width; ++v) {
      row[v] = V::Load(value + V::kLanes * v, tile.head_dim - d - V::kLanes * v);
      Prefetch(value + kTokensAhead * tile.token_stride + V::kLanes * v);
    }
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const typename V::Floats weight = V::Set(scores[r * kBlockKeys + key]);
#pragma GCC unroll 4
      for (int v = 0; v < Width; ++v) sum[r][v] = V::MultiplyAdd(weight, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < Width; ++v) V::Store(sums + r * width + V::kLanes * v, sum[r][v]);
  }
}

template <typename V, typename T, int Width>
void AddStrip(const AttentionTile& tile, const T* values, int64_t count, int64_t d, Vectors vectors,
              const Scratch<V>& scratch) {
  const int64_t width = RoundUp<V>(tile.head_dim);
  constexpr decltype(&AddValues<V, T, 1, Width>) kAddOfRows[] = {
      nullptr, AddValues<V, T, 1, Width>, AddValues<V, T, 2, Width>, AddValues<V, T, 3, Width>,
      AddValues<V, T, 4, Width>};
  for (int64_t v = vectors.begin; v < vectors.end; v += V::kFewRows) {
    kAddOfRows[Min(vectors.end - v, V::kFewRows)](tile, values, count, d,
                                                  scratch.scores + v * kBlockKeys,
                                                  scratch.sums + v * width + d, width);
  }
}

// O += P V for `count` values as they are stored.
template <typename V, typename T>
void AddFew(const AttentionTile& tile, const T* values, int64_t count, Vectors vectors,
            const Scratch<V>& scratch) {
  const int64_t width = RoundUp<V>(tile.head_dim);
  int64_t d = 0;
  for (; d + 4 * V::kLanes <= width; d += 4 * V::kLanes) {
    AddStrip<V, T, 4>(tile, values, count, d, vectors, scratch);
  }
  for (; d < width; d += V::kLanes) AddStrip<V, T, 1>(tile, values, count, d, vectors, scratch);
}

// ---- both --------------------------------------------------------------------------------------

// Turns scores [begin, end) of 64 into probabilities relative to the new maximum, the others into
// zero, and brings denominator and sums [width] along. begin < end.
template <typename V>
void Softmax(int64_t begin, int64_t end, float* scores, float* maximum, float* denominator,
             float* sums, int64_t width) {
  constexpr int64_t kParts = kBlockKeys / V::kLanes;
  typename V::Floats s[kParts];
  typename V::Floats largest = V::Set(*maximum);
#pragma GCC unroll 8
  for (int64_t v = 0; v < kParts; ++v) {
    s[v] = V::LoadOrLowest(scores + V::kLanes * v, begin - V::kLanes * v, end - V::kLanes * v);
    largest = V::Max(largest, s[v]);
  }
  const float new_maximum = V::ReduceMax(largest);
  const typename V::Floats base = V::Set(new_maximum);
  typename V::Floats sum = V::Set(0);
#pragma GCC unroll 8
  for (int64_t v = 0; v < kParts; ++v) {
    s[v] = V::ExpOf(V::Subtract(s[v], base));
    sum = V::Add(sum, s[v]);
    V::Store(scores + V::kLanes * v, s[v]);
  }
  if (new_maximum != *maximum) {
    const typename V::Floats shrink = V::ExpOf(V::Subtract(V::Set(*maximum), base));
    for (int64_t d = 0; d < width; d += V::kLanes) {
      V::Store(sums + d, V::Multiply(V::Load(sums + d), shrink));
    }
    *denominator *= V::First(shrink);
    *maximum = new_maximum;
  }
  *denominator += V::ReduceAdd(sum);
}

// Query vectors of the tile, each of which sees one of the `count` keys from `key` on.
template <typename V, typename T>
void AttendBlock(const AttentionTile& tile, Vectors vectors, int64_t key, int64_t count,
                 const Scratch<V>& scratch) {
  const int64_t i = vectors.begin;
  const int64_t m = vectors.end - i;
  const int64_t width = RoundUp<V>(tile.head_dim);
  const T* keys = static_cast<const T*>(tile.keys) + key * tile.token_stride;
  const T* values = static_cast<const T*>(tile.values) + key * tile.token_stride;
  const bool few = tile.rows * tile.heads <= kFewVectors;
  if (few) {
    ScoreFew<V, T>(tile, keys, count, vectors, scratch);
  } else {
    PackKeys<V, T>(tile, keys, count, scratch.keys);
    PackValues<V, T>(tile, values, count, scratch.values);
    Multiply<V>(scratch.queries + i * width, width, scratch.keys, kBlockKeys, m, RoundUp<V>(count),
                tile.head_dim, false, scratch.scores + i * kBlockKeys, kBlockKeys);
  }
  for (int64_t v = i; v < vectors.end; ++v) {
    const int64_t own = tile.first_position + v / tile.heads - key;  // the row's own key
    Softmax<V>(Max(0, own - tile.window + 1), Min(count, own + 1), scratch.scores + v * kBlockKeys,
               tile.maximum + v, tile.denominator + v, scratch.sums + v * width, width);
  }
  if (few) {
    AddFew<V, T>(tile, values, count, vectors, scratch);
  } else {
    Multiply<V>(scratch.scores + i * kBlockKeys, kBlockKeys, scratch.values, width, m, width, count,
                true, scratch.sums + i * width, width);
  }
}

template <typename V>
auto AttendBlockOf(KvElement element) {
  switch (element) {
    case KvElement::kF32:
      return AttendBlock<V, float>;
    case KvElement::kBf16:
      return AttendBlock<V, Bf16>;
    case KvElement::kE4M3:
      return AttendBlock<V, E4M3>;
    case KvElement::kInt8:
      break;
  }
  return AttendBlock<V, Int8>;
}

template <typename V>
void AttendFlash(const AttentionTile& tile) {
  const auto attend = AttendBlockOf<V>(tile.element);
  const int64_t m = tile.rows * tile.heads;
  const int64_t dim = tile.head_dim;
  const int64_t width = RoundUp<V>(dim);
  const Scratch<V> scratch(tile.scratch, m, dim);
  GatherQueries<V>(tile, scratch.queries);
  for (int64_t i = 0; i < m; ++i) {
    tile.maximum[i] = -__builtin_inff();
    tile.denominator[i] = 0;
  }
  for (int64_t i = 0; i < m * width; ++i) scratch.sums[i] = 0;

  for (int64_t key = tile.key_begin; key < tile.key_end; key += kBlockKeys) {
    const int64_t count = Min(kBlockKeys, tile.key_end - key);
    // Rows before the first see no key of the block (the triangle's upper part), nor do those from
    // the end on (their windows begin behind it).
    const int64_t first_row = Max(0, key - tile.first_position);
    const int64_t end_row = Min(tile.rows, key + count - 1 + tile.window - tile.first_position);
    if (first_row >= end_row) continue;
    attend(tile, {first_row * tile.heads, end_row * tile.heads}, key, count, scratch);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t d = 0; d < dim; d += V::kLanes) {
      V::Store(tile.numerator + i * dim + d, V::Load(scratch.sums + i * width + d), dim - d);
    }
  }
}

}  // namespace
}  // namespace octavo
