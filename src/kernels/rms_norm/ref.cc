#include <cmath>

#include "kernels/rms_norm/kernels.h"

namespace octavo {

void RmsNormRef(const float* x, int64_t k, const float* weight, float epsilon, float* y) {
  float sum = 0;
  for (int64_t j = 0; j < k; ++j) sum += x[j] * x[j];
  const float factor = 1.0F / std::sqrt(sum / static_cast<float>(k) + epsilon);
  for (int64_t j = 0; j < k; ++j) y[j] = x[j] * factor * weight[j];
}

}  // namespace octavo
