#include "compress/rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#define EIGEN_DONT_PARALLELIZE
#include <Eigen/QR>

#include "base/rng.h"
#include "compress/hadamard_matrix.h"

namespace octavo {

namespace {

// FNV-1a: what is random depends on all of these and nothing else.
uint64_t SeedOf(std::string_view group, int64_t n, uint64_t seed) {
  uint64_t hash = 0xCBF29CE484222325U;
  const auto add = [&](uint64_t byte) { hash = (hash ^ byte) * 0x100000001B3U; };
  for (const char c : group) add(static_cast<unsigned char>(c));
  for (const uint64_t number : {static_cast<uint64_t>(n), seed}) {
    for (int shift = 0; shift < 64; shift += 8) add(number >> shift & 0xFFU);
  }
  return hash;
}

// The orthogonal factor of a matrix of normally distributed numbers, of which R's diagonal is made
// positive: uniform over all rotations and reflections.
std::vector<double> RandomOrthogonal(int64_t n, Rng* rng) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Matrix normal(n, n);
  for (int64_t i = 0; i < n * n; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - rng->Uniform()));
    normal.data()[i] = radius * std::cos(2 * std::numbers::pi * rng->Uniform());
  }
  const Eigen::HouseholderQR<Matrix> factors(normal);
  Matrix orthogonal = factors.householderQ();
  for (int64_t j = 0; j < n; ++j) {
    if (factors.matrixQR()(j, j) < 0) orthogonal.col(j) = -orthogonal.col(j);
  }
  return {orthogonal.data(), orthogonal.data() + n * n};
}

// x [count, width] <- S x.
void MultiplySylvester(double* x, int64_t count, int64_t width) {
  for (int64_t half = 1; half < count; half *= 2) {
    for (int64_t first = 0; first < count; first += 2 * half) {
      double* upper = x + first * width;
      double* lower = upper + half * width;
      for (int64_t i = 0; i < half * width; ++i) {
        const double sum = upper[i] + lower[i];
        lower[i] = upper[i] - lower[i];
        upper[i] = sum;
      }
    }
  }
}

Status NoSuchMatrix(TransformType type, int64_t n) {
  const int64_t fits = n & -n;
  if (type == TransformType::kHadamard) {
    return InvalidArgument(fmt::format(
        "a hadamard matrix must have a power of two, not {}; give a transform_block_size of {} or "
        "another power of two that divides it, or transform_type random-hadamard",
        n, fits));
  }
  return InvalidArgument(fmt::format(
      "no Hadamard matrix of size {} is known here; give a transform_block_size of {} or another "
      "power of two that divides it, or transform_type random-matrix",
      n, fits));
}

}  // namespace

Result<Rotation> Rotation::Make(TransformType type, std::string_view group, int64_t n,
                                uint64_t seed) {
  Rotation rotation;
  rotation.n_ = n;
  Rng rng(SeedOf(group, n, seed));
  if (type == TransformType::kRandomMatrix) {
    rotation.core_size_ = n;
    rotation.core_ = RandomOrthogonal(n, &rng);
    return rotation;
  }
  const auto core = HadamardCore(n);
  if (!core || (type == TransformType::kHadamard && core->n != 1)) return NoSuchMatrix(type, n);
  rotation.core_size_ = core->n;
  rotation.core_.assign(core->elements.begin(), core->elements.end());
  rotation.scale_ = 1 / std::sqrt(static_cast<double>(n));
  if (type == TransformType::kHadamard) return rotation;
  for (int64_t i = 0; i < n; ++i) rotation.signs_.push_back(rng.Below(2) == 0 ? 1.0 : -1.0);
  return rotation;
}

void Rotation::Multiply(bool transpose, double* x, int64_t width, double* scratch) const {
  const auto apply_signs = [&] {
    for (size_t i = 0; i < signs_.size(); ++i) {
      double* row = x + static_cast<int64_t>(i) * width;
      for (int64_t j = 0; j < width; ++j) row[j] *= signs_[i];
    }
  };
  if (transpose) apply_signs();
  const int64_t inner = n_ / core_size_;
  for (int64_t i = 0; i < core_size_; ++i) MultiplySylvester(x + i * inner * width, inner, width);
  const int64_t row = inner * width;
  if (core_size_ > 1) {
    std::copy_n(x, n_ * width, scratch);
    std::fill_n(x, n_ * width, 0.0);
    for (int64_t i = 0; i < core_size_; ++i) {
      for (int64_t j = 0; j < core_size_; ++j) {
        const double c =
            core_[static_cast<size_t>(transpose ? j * core_size_ + i : i * core_size_ + j)];
        const double* from = scratch + j * row;
        double* to = x + i * row;
        for (int64_t l = 0; l < row; ++l) to[l] += c * from[l];
      }
    }
  }
  for (int64_t i = 0; i < n_ * width; ++i) x[i] *= scale_;
  if (!transpose) apply_signs();
}

Tensor Rotation::Stored(DType dtype) const {
  OCTAVO_CHECK(dtype == DType::kF64 || dtype == DType::kF32) << DTypeName(dtype);
  Tensor stored(dtype, {n_, n_});
  const int64_t inner = n_ / core_size_;
  for (int64_t i = 0; i < n_; ++i) {
    const double sign = signs_.empty() ? 1 : signs_[static_cast<size_t>(i)];
    for (int64_t j = 0; j < n_; ++j) {
      const double core = core_[static_cast<size_t>(i / inner * core_size_ + j / inner)];
      const auto shared = static_cast<uint64_t>(i % inner) & static_cast<uint64_t>(j % inner);
      const double element = std::popcount(shared) % 2 == 0 ? sign * core : -sign * core;
      const auto at = static_cast<size_t>(i * n_ + j);
      if (dtype == DType::kF64) {
        stored.mutable_data<double>()[at] = element;
      } else {
        stored.mutable_data<float>()[at] = static_cast<float>(element);
      }
    }
  }
  return stored;
}

}  // namespace octavo
