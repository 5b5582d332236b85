// What several AVX-512 VNNI kernels share: a step of an integer tile. Only for files compiled for
// AVX-512 VNNI.
#pragma once

#include <immintrin.h>

#include <cstdint>

// In an anonymous namespace on purpose: see x86_avx512_math.h.
namespace octavo {
namespace {  // NOLINT(google-build-namespaces)

// Vectors of 16 columns that a tile is wide.
constexpr int kColumnVectors = 4;

// GCC 12 spills accumulators of type __m512i that are fed to the intrinsic (half speed); it keeps
// those of the builtin's own type. Clang needs the intrinsic.
#ifdef __clang__
using Lanes = __m512i;
inline Lanes DotAccumulate(Lanes sum, __m512i weights, __m512i row) {
  return _mm512_dpbusd_epi32(sum, weights, row);
}
#else
using Lanes = __v16si;
inline Lanes DotAccumulate(Lanes sum, __m512i weights, __m512i row) {
  return __builtin_ia32_vpdpbusd_v16si(sum, reinterpret_cast<__v16si>(weights),
                                       reinterpret_cast<__v16si>(row));
}
#endif

inline int32_t LoadFour(const int8_t* bytes) {
  int32_t four;
  __builtin_memcpy(&four, bytes, sizeof(four));
  return four;
}

// The first lanes, none where count is negative.
inline __mmask16 Lanes16(int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xFFFF : count <= 0 ? 0 : (1U << count) - 1);
}

// One step of k: four values of each of 64 columns at `weights` times the four that row_group(r)
// gives. Always in line: only so do accumulators stay in registers.
template <int Rows, typename RowGroup>
inline __attribute__((always_inline)) void MultiplyGroup(const uint8_t* weights,
                                                         const RowGroup& row_group,
                                                         Lanes (&sums)[Rows][kColumnVectors]) {
  __m512i w[kColumnVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kColumnVectors; ++v) w[v] = _mm512_loadu_si512(weights + 64 * v);
#pragma GCC unroll 6
  for (int r = 0; r < Rows; ++r) {
    const __m512i row = _mm512_set1_epi32(row_group(r));
#pragma GCC unroll 4
    for (int v = 0; v < kColumnVectors; ++v) sums[r][v] = DotAccumulate(sums[r][v], w[v], row);
  }
}

}  // namespace
}  // namespace octavo
