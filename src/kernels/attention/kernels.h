// The kernels of attention: a tile of query vectors over a range of keys of one kv head.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"

namespace octavo {

// What a key or value is stored as. Codes (the last two) are read as they are: scales are the
// caller's.
enum class KvElement : uint8_t { kF32, kBf16, kE4M3, kInt8 };

// `rows` neighbouring positions times the `heads` query heads that share a kv head make rows *
// heads query vectors, numbered row * heads + head.
struct AttentionTile {
  const float* q;  // (row, head, d) at row * ldq + head * head_dim + d
  int64_t ldq;
  int64_t rows;
  int64_t heads;
  int64_t head_dim;
  float scale;
  float soft_cap;          // 0: none; the portable kernel alone has it
  int64_t first_position;  // row r sees keys first_position + r - window + 1 .. first_position + r
  int64_t window;          // ... all before it when larger than that ...
  int64_t key_begin;       // ... of those in [key_begin, key_end)
  int64_t key_end;
  KvElement element;   // of keys and values
  const void* keys;    // element (t, d) at t * token_stride + d
  const void* values;  // likewise
  int64_t token_stride;
  float* scratch;
  // Results, for each query vector: maximum = max_t s_t (-inf when it sees no key here),
  // denominator = sum_t exp(s_t - maximum), numerator[d] = sum_t exp(s_t - maximum) v_t[d], where
  // s_t = scale * q k_t. Parts over disjoint keys can be merged.
  float* maximum;      // [rows * heads]
  float* denominator;  // [rows * heads]
  float* numerator;    // [rows * heads, head_dim]
};

using AttendTile = void(const AttentionTile& tile);
// Floats of scratch that a tile of `vectors` query vectors needs.
using AttendScratch = int64_t(int64_t vectors, int64_t head_dim);

struct AttentionKernel {
  Isa isa;
  const char* name;
  AttendTile* run;
  AttendScratch* scratch_floats;
  Exactness exactness;
};

#define OCTAVO_KERNEL(isa, function, scratch, exactness) \
  AttendTile function;                                   \
  AttendScratch scratch;
#include "kernels/attention/kernels.inc"
#undef OCTAVO_KERNEL

std::span<const AttentionKernel> AttentionKernels();

}  // namespace octavo
