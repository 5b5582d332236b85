#include "kernels/matmul_int8/kernels.h"

namespace octavo {

int32_t SumInt8Ref(const int8_t* q, int64_t k) {
  int32_t sum = 0;
  for (int64_t l = 0; l < k; ++l) sum += q[l];
  return sum;
}

// Column tiles of one: packed weights are rows as q's, filled up to whole groups.
void MultiplyInt8Ref(const Int8Block& block) {
  for (int64_t i = 0; i < block.m; ++i) {
    const int8_t* row = block.rows + i * block.k;
    for (int64_t j = 0; j < block.n; ++j) {
      const auto* weights =
          reinterpret_cast<const int8_t*>(block.weights) + j * block.groups() * kInt8Group;
      int32_t sum = 0;
      for (int64_t l = 0; l < block.k; ++l) sum += int32_t{row[l]} * int32_t{weights[l]};
      if (block.zero_points != nullptr) sum -= block.zero_points[i] * block.column_sums[j];
      float value = static_cast<float>(sum) * (block.row_scales[i] * block.weight_scales[j]);
      if (block.bias != nullptr) value += block.bias[j];
      block.y[i * block.ldy + j] = value;
    }
  }
}

}  // namespace octavo
