#include "kernels/matmul_int4/kernels.h"

namespace octavo {

namespace {

// Column tiles of one: the weights of column j are steps of four bytes.
int32_t CodeAt(const Int4Block& block, int64_t j, int64_t k) {
  const int64_t in_step = k % kInt4Step;
  const uint8_t byte = block.weights[(j * block.steps() + k / kInt4Step) * 4 + in_step % 4];
  return in_step < 4 ? byte & 15 : byte >> 4;
}

}  // namespace

void MultiplyInt4Ref(const Int4Block& block) {
  const int64_t num_parts = block.parts.count();
  for (int64_t i = 0; i < block.m; ++i) {
    const int8_t* row = block.rows + i * block.parts.k;
    const float* row_scales = block.row_scales + i * block.row_scales_stride;
    for (int64_t j = 0; j < block.n; ++j) {
      float y = 0;
      for (int64_t p = 0; p < num_parts; ++p) {
        const Int4Part part = block.parts.At(p);
        int32_t sum = 0;
        for (int64_t k = part.begin; k < part.end; ++k) sum += row[k] * CodeAt(block, j, k);
        const int64_t at = part.group * block.scales_stride + j;
        const int32_t offset = block.offsets == nullptr ? 8 : block.offsets[at];
        sum -= offset * block.row_sums[i * num_parts + p];
        float scale = block.weight_scales[at];
        if (block.scales_of_groups) scale *= row_scales[part.group];
        const float scaled = static_cast<float>(sum) * scale;
        y = p == 0 ? scaled : y + scaled;
      }
      if (!block.scales_of_groups) y *= row_scales[0];
      if (block.bias != nullptr) y += block.bias[j];
      block.y[i * block.ldy + j] = y;
    }
  }
}

}  // namespace octavo
