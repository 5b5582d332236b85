// Causal attention of new tokens over what a layer remembers: y = softmax(scale * q k^T) v,
// grouped-query heads.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "tensor/dtype.h"

namespace octavo {

struct AttentionShape {
  int64_t heads = 0;  // query heads; a multiple of kv_heads
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  float scale = 0;     // usually 1 / sqrt(head_dim)
  int64_t window = 0;  // positions a row sees, its own with them; 0: all before it
  float soft_cap = 0;  // c: a scaled score s becomes c tanh(s / c); 0: it stays
};

// Keys and values of one sequence: element (t, h, d) at bytes + (t * token_stride + h * head_stride
// + d) elements. F32 or BF16, or codes that a scale for each kv head turns into values: F8_E4M3 or
// I8.
struct KvView {
  DType dtype = DType::kF32;
  const void* keys = nullptr;
  const void* values = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;
  const float* key_scales = nullptr;    // [kv_heads]; codes only
  const float* value_scales = nullptr;  // likewise
};

// Rows [first_row, first_row + rows) of q and out belong to one sequence, at positions
// first_position ... of it; the row at position p sees the keys of positions
// max(0, p - window + 1) .. p. `kv` holds positions kv_begin ... of the sequence, among them all
// that a row sees.
struct AttentionSequence {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_position = 0;
  int64_t kv_begin = 0;
  KvView kv;
};

// q and out: [m, heads, head_dim] f32, ldq and ldo floats from row to row. Scores, softmax and sums
// in f32. Tiles of (sequence, kv head, query rows) are fixed, keys are visited in blocks with a
// running maximum (online softmax), so results depend neither on threads nor on how rows are cut
// into calls beyond rounding. Exactness class: bounded.
void Attend(const AttentionShape& shape, std::span<const AttentionSequence> sequences,
            const float* q, int64_t ldq, float* out, int64_t ldo, Isa isa, ThreadPool& pool);

}  // namespace octavo
