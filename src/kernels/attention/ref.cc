#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/kernels.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {

namespace {

float Element(const void* base, KvElement element, int64_t index) {
  switch (element) {
    case KvElement::kF32:
      return static_cast<const float*>(base)[index];
    case KvElement::kBf16:
      return FloatFromBf16(static_cast<const uint16_t*>(base)[index]);
    case KvElement::kE4M3:
      return FloatFromE4M3(static_cast<const uint8_t*>(base)[index]);
    case KvElement::kInt8:
      return static_cast<const int8_t*>(base)[index];
  }
  return 0;
}

// One query vector over keys [begin, end), a key at a time with a running maximum.
void AttendVector(const AttentionTile& tile, const float* q, int64_t begin, int64_t end,
                  float* maximum, float* denominator, float* numerator) {
  *maximum = -std::numeric_limits<float>::infinity();
  *denominator = 0;
  std::fill_n(numerator, tile.head_dim, 0.0F);
  for (int64_t t = begin; t < end; ++t) {
    float score = 0;
    for (int64_t d = 0; d < tile.head_dim; ++d) {
      score += q[d] * Element(tile.keys, tile.element, t * tile.token_stride + d);
    }
    score *= tile.scale;
    if (tile.soft_cap != 0) score = tile.soft_cap * std::tanh(score / tile.soft_cap);
    if (score > *maximum) {
      const float shrink = std::exp(*maximum - score);
      *denominator *= shrink;
      for (int64_t d = 0; d < tile.head_dim; ++d) numerator[d] *= shrink;
      *maximum = score;
    }
    const float weight = std::exp(score - *maximum);
    *denominator += weight;
    for (int64_t d = 0; d < tile.head_dim; ++d) {
      numerator[d] += weight * Element(tile.values, tile.element, t * tile.token_stride + d);
    }
  }
}

}  // namespace

int64_t AttendScratchRef(int64_t /*vectors*/, int64_t /*head_dim*/) {
  return 0;
}

void AttendRef(const AttentionTile& tile) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    const int64_t position = tile.first_position + row;
    const int64_t begin = std::max(tile.key_begin, position - tile.window + 1);
    const int64_t end = std::min(tile.key_end, position + 1);
    for (int64_t head = 0; head < tile.heads; ++head) {
      const int64_t vector = row * tile.heads + head;
      AttendVector(tile, tile.q + row * tile.ldq + head * tile.head_dim, begin, end,
                   tile.maximum + vector, tile.denominator + vector,
                   tile.numerator + vector * tile.head_dim);
    }
  }
}

}  // namespace octavo
