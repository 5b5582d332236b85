#include <cmath>

#include "kernels/silu_mul/kernels.h"

namespace octavo {

void SiluMulRef(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t j = 0; j < n; ++j) y[j] = gate[j] / (1.0F + std::exp(-gate[j])) * up[j];
}

}  // namespace octavo
