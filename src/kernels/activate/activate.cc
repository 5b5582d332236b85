#include "kernels/activate/activate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/silu_mul/silu_mul.h"
#include "kernels/split.h"

namespace octavo {

namespace {

float Gelu(float x) {
  return 0.5F * x * (1 + std::erf(x / std::numbers::sqrt2_v<float>));
}

float GeluTanh(float x) {
  constexpr float kSqrt2OverPi = 0.797884560802865F;
  return 0.5F * x * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715F * x * x * x)));
}

float Relu(float x) {
  return std::max(x, 0.0F);
}

template <float (*function)(float)>
void Each(const float* gate_up, int64_t ld, int64_t m, int64_t n, float* y, int64_t ldy,
          ThreadPool& pool) {
  // A function takes as long as a dozen additions.
  ForEachRow(pool, m, 16 * n, [&](int64_t i) {
    const float* gate = gate_up + i * ld;
    for (int64_t j = 0; j < n; ++j) y[i * ldy + j] = function(gate[j]) * gate[n + j];
  });
}

}  // namespace

void ActivateAndMultiply(Activation activation, const float* gate_up, int64_t ld, int64_t m,
                         int64_t n, float* y, int64_t ldy, Isa isa, ThreadPool& pool) {
  switch (activation) {
    case Activation::kSilu:
      return SiluMul(gate_up, ld, m, n, y, ldy, isa, pool);
    case Activation::kGelu:
      return Each<Gelu>(gate_up, ld, m, n, y, ldy, pool);
    case Activation::kGeluTanh:
      return Each<GeluTanh>(gate_up, ld, m, n, y, ldy, pool);
    case Activation::kRelu:
      return Each<Relu>(gate_up, ld, m, n, y, ldy, pool);
  }
}

}  // namespace octavo
