#include "quant/row_transform.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "kernels/hadamard/hadamard.h"
#include "kernels/matmul_float/matmul_float.h"
#include "kernels/split.h"

namespace octavo {

namespace {

bool IsPowerOfTwo(int64_t n) {
  return n > 0 && std::has_single_bit(static_cast<uint64_t>(n));
}

// (-1)^(bits that i and j share).
float SylvesterSign(size_t i, size_t j) {
  return std::popcount(i & j) % 2 == 0 ? 1.0F : -1.0F;
}

// matrix = diag(signs) (core x S).
struct Factors {
  std::vector<float> signs;
  std::vector<float> core;  // [size, size]
  size_t size = 1;
};

// With S of `inner` rows: the core is what stands in the corner of each block of that size.
std::optional<Factors> FactorBy(std::span<const float> matrix, size_t n, size_t inner) {
  Factors factors{std::vector<float>(n), {}, n / inner};
  for (size_t i = 0; i < n; ++i) {
    const std::span<const float> row = matrix.subspan(i * n, n);
    const std::span<const float> first = matrix.subspan(i / inner * inner * n, n);
    const float sign = row[0] * first[0];
    for (size_t j = 0; j < n; ++j) {
      const float corner = first[j / inner * inner];
      if (std::fabs(corner) != 1 || row[j] != sign * corner * SylvesterSign(i % inner, j % inner))
        return std::nullopt;
    }
    factors.signs[i] = sign;
    if (i % inner != 0) continue;
    for (size_t j = 0; j < n; j += inner) factors.core.push_back(row[j]);
  }
  return factors;
}

// With the largest S there is.
std::optional<Factors> Factor(std::span<const float> matrix, size_t n) {
  for (size_t inner = n & -n; inner >= std::min<size_t>(n, 2); inner /= 2) {
    if (auto factors = FactorBy(matrix, n, inner)) return factors;
  }
  return std::nullopt;
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
  // (diag(d) (C x S))^T = (C^T x S) diag(d).
  if (auto factors = Factor(elements, n)) {
    signs_ = std::move(factors->signs);
    const size_t size = factors->size;
    if (size == 1) {
      for (float& sign : signs_) sign *= factors->core.front();
      return;
    }
    core_ = Tensor(DType::kF32, {static_cast<int64_t>(size), static_cast<int64_t>(size)});
    const auto core = core_.mutable_data<float>();
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j)
        core[i * size + j] = factors->core[transpose ? i * size + j : j * size + i];
    }
    return;
  }
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
  if (!core_.empty()) return ApplyWithCore(x, ldx, m, k, y, ldy, context);
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

// Blocks of S first; then, for each place within them, the core: a product of rows that are
// gathered from all blocks.
void RowTransform::ApplyWithCore(const float* x, int64_t ldx, int64_t m, int64_t k, float* y,
                                 int64_t ldy, const Context& context) const {
  const int64_t size = core_.dim(0);
  const int64_t inner = n_ / size;
  std::vector<float> scattered(static_cast<size_t>(m * k));
  std::vector<float> gathered(scattered.size());
  // Calls of(place, place among those gathered, place in M) for each element of a row.
  const auto for_each_element = [&](const auto& of) {
    for (int64_t begin = 0; begin < k; begin += n_) {
      for (int64_t c = 0; c < size; ++c) {
        for (int64_t i = 0; i < inner; ++i)
          of(begin + c * inner + i, begin + i * size + c, c * inner + i);
      }
    }
  };
  const float* before = signs_after_ ? nullptr : signs_.data();
  const float* after = signs_after_ ? signs_.data() : nullptr;
  ForEachRow(context.pool, m, k, [&](int64_t row) {
    const float* from = x + row * ldx;
    float* to = scattered.data() + row * k;
    for_each_element([&](int64_t place, int64_t, int64_t i) {
      to[place] = before == nullptr ? from[place] : from[place] * before[i];
    });
  });
  ApplyHadamard({.n = inner, .before = nullptr, .after = nullptr, .scale = scale_},
                scattered.data(), k, m, k, scattered.data(), k, context.isa, context.pool);
  ForEachRow(context.pool, m, k, [&](int64_t row) {
    const float* from = scattered.data() + row * k;
    float* to = gathered.data() + row * k;
    for_each_element([&](int64_t place, int64_t other, int64_t) { to[other] = from[place]; });
  });
  MultiplyFloat(core_, {}, gathered.data(), size, m * k / size, scattered.data(), size, context.isa,
                context.pool);
  ForEachRow(context.pool, m, k, [&](int64_t row) {
    const float* from = scattered.data() + row * k;
    float* to = y + row * ldy;
    for_each_element([&](int64_t place, int64_t other, int64_t i) {
      to[place] = after == nullptr ? from[other] : from[other] * after[i];
    });
  });
}

void RowTransform::ApplyInPlace(float* x, int64_t ldx, int64_t m, int64_t k,
                                const Context& context) const {
  if (is_fast()) return Apply(x, ldx, m, k, x, ldx, context);
  std::vector<float> rows(static_cast<size_t>(m * k));
  for (int64_t row = 0; row < m; ++row) std::copy_n(x + row * ldx, k, rows.data() + row * k);
  Apply(rows.data(), k, m, k, x, ldx, context);
}

}  // namespace octavo
