#include "kernels/matmul_int8/kernels.h"

namespace octavo {

// Row and column tiles of one: both operands are plain rows of groups * 4 bytes.
void MultiplyInt8Ref(const Int8Block& block) {
  const int64_t k = block.groups * kInt8Group;
  for (int64_t i = 0; i < block.m; ++i) {
    const int8_t* row = block.rows + i * k;
    for (int64_t j = 0; j < block.n; ++j) {
      const auto* weights = reinterpret_cast<const int8_t*>(block.weights) + j * k;
      int32_t sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += int32_t{row[l]} * int32_t{weights[l]};
      if (block.zero_points != nullptr) sum -= block.zero_points[i] * block.column_sums[j];
      float value = static_cast<float>(sum) * (block.row_scales[i] * block.weight_scales[j]);
      if (block.bias != nullptr) value += block.bias[j];
      block.y[i * block.ldy + j] = value;
    }
  }
}

}  // namespace octavo
