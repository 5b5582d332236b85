#include "quant/row_transform.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/hadamard/hadamard.h"
#include "kernels/matmul_float/matmul_float.h"

namespace octavo {

namespace {

bool IsPowerOfTwo(int64_t n) {
  return n > 0 && std::has_single_bit(static_cast<uint64_t>(n));
}

// (-1)^(bits that i and j share).
float SylvesterSign(size_t i, size_t j) {
  return std::popcount(i & j) % 2 == 0 ? 1.0F : -1.0F;
}

// The signs d with matrix = diag(d) H; empty when there are none.
std::vector<float> SignsOfRows(std::span<const float> matrix, size_t n) {
  std::vector<float> signs(n);
  for (size_t i = 0; i < n; ++i) {
    signs[i] = matrix[i * n];  // H's first column is all ones
    if (std::fabs(signs[i]) != 1) return {};
    for (size_t j = 0; j < n; ++j) {
      if (matrix[i * n + j] != signs[i] * SylvesterSign(i, j)) return {};
    }
  }
  return signs;
}

}  // namespace

RowTransform::RowTransform(int64_t n)
    : n_(n), scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(n)))) {
  OCTAVO_CHECK(IsPowerOfTwo(n)) << n;
}

RowTransform::RowTransform(const Tensor& matrix, float scale, bool transpose)
    : n_(matrix.dim(0)), scale_(scale), signs_after_(transpose) {
  OCTAVO_CHECK(matrix.dtype() == DType::kF32 && matrix.shape() == (Shape{n_, n_}));
  const auto n = static_cast<size_t>(n_);
  const auto elements = matrix.data<float>();
  // (diag(d) H)^T = H diag(d).
  if (IsPowerOfTwo(n_)) signs_ = SignsOfRows(elements, n);
  if (!signs_.empty()) return;
  matrix_ = Tensor(DType::kF32, {n_, n_});
  const auto block = matrix_.mutable_data<float>();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j)
      block[i * n + j] = scale * (transpose ? elements[i * n + j] : elements[j * n + i]);
  }
}

void RowTransform::Apply(const float* x, int64_t ldx, int64_t m, int64_t k, float* y, int64_t ldy,
                         const Context& context) const {
  OCTAVO_CHECK(k % n_ == 0) << k << " columns in blocks of " << n_;
  if (is_fast()) {
    const float* signs = signs_.empty() ? nullptr : signs_.data();
    ApplyHadamard({.n = n_,
                   .before = signs_after_ ? nullptr : signs,
                   .after = signs_after_ ? signs : nullptr,
                   .scale = scale_},
                  x, ldx, m, k, y, ldy, context.isa, context.pool);
    return;
  }
  for (int64_t begin = 0; begin < k; begin += n_) {
    MultiplyFloat(matrix_, {}, x + begin, ldx, m, y + begin, ldy, context.isa, context.pool);
  }
}

void RowTransform::ApplyInPlace(float* x, int64_t ldx, int64_t m, int64_t k,
                                const Context& context) const {
  if (is_fast()) return Apply(x, ldx, m, k, x, ldx, context);
  std::vector<float> rows(static_cast<size_t>(m * k));
  for (int64_t row = 0; row < m; ++row) std::copy_n(x + row * ldx, k, rows.data() + row * k);
  Apply(rows.data(), k, m, k, x, ldx, context);
}

}  // namespace octavo
