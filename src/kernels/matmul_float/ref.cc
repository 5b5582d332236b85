#include <cstring>

#include "kernels/matmul_float/kernels.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

float ToFloat(Bf16 value) {
  return FloatFromBf16(value.bits);
}
float ToFloat(F16 value) {
  return FloatFromF16(value.bits);
}
float ToFloat(float value) {
  return value;
}

template <typename T>
float LoadElement(const void* src, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(src) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return ToFloat(value);
}

template <typename T>
void DotRowsOf(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
               float* y, int64_t ldy) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += x[i * ldx + l] * LoadElement<T>(w, j * k + l);
      y[i * ldy + j] = sum;
    }
  }
}

}  // namespace

void DotRowsBf16Ref(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                    float* y, int64_t ldy) {
  DotRowsOf<Bf16>(w, n, k, x, ldx, m, y, ldy);
}
void DotRowsF16Ref(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                   float* y, int64_t ldy) {
  DotRowsOf<F16>(w, n, k, x, ldx, m, y, ldy);
}
void DotRowsF32Ref(const void* w, int64_t n, int64_t k, const float* x, int64_t ldx, int64_t m,
                   float* y, int64_t ldy) {
  DotRowsOf<float>(w, n, k, x, ldx, m, y, ldy);
}

}  // namespace octavo
