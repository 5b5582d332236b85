#include "compress/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "compress/fold_rotations.h"
#include "compress/hadamard_matrix.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TestContext;

// The largest element of a a^T - c I.
template <typename T>
double FarFromOrthogonal(std::span<const T> a, int64_t n, double c) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = i == j ? -c : 0;
      for (int64_t l = 0; l < n; ++l)
        sum += static_cast<double>(a[static_cast<size_t>(i * n + l)]) *
               static_cast<double>(a[static_cast<size_t>(j * n + l)]);
      largest = std::max(largest, std::fabs(sum));
    }
  }
  return largest;
}

TEST(HadamardCore, IsTheSmallestThatThereIs) {
  const std::vector<std::pair<int64_t, int64_t>> cores = {
      {1, 1},      {64, 1},      {12, 12},     {384, 12},  {576, 36},   {1536, 12},
      {20, 20},    {28, 28},     {52, 52},     {100, 100}, {124, 124},  {5120, 20},
      {8960, 140}, {18944, 148}, {27648, 108}, {208, 52},  {11008, 344}};
  for (const auto& [n, size] : cores) {
    const auto core = HadamardCore(n);
    ASSERT_TRUE(core.has_value()) << n;
    EXPECT_EQ(core->n, size) << n;
    for (const int8_t element : core->elements) ASSERT_EQ(std::abs(element), 1) << n;
    EXPECT_EQ(FarFromOrthogonal<int8_t>(core->elements, core->n, static_cast<double>(core->n)), 0)
        << n;
  }
}

TEST(HadamardCore, OfOtherSizesThereIsNone) {
  for (const int64_t n : {92, 172, 184}) EXPECT_FALSE(HadamardCore(n)) << n;
}

class RotationOfType : public ::testing::TestWithParam<std::tuple<TransformType, int64_t>> {};

// What is stored is what weights are multiplied by, and orthogonal.
TEST_P(RotationOfType, MultipliesByWhatItStores) {
  const auto& [type, n] = GetParam();
  const auto rotation = Rotation::Make(type, "R1", n, 7);
  ASSERT_OK(rotation);
  const Tensor stored = rotation->Stored(DType::kF64);
  const auto matrix = stored.data<double>();
  const bool is_hadamard = type != TransformType::kRandomMatrix;
  const double square = is_hadamard ? static_cast<double>(n) : 1;
  EXPECT_LT(FarFromOrthogonal(matrix, n, square), 1e-12);
  if (is_hadamard) {
    for (const double element : matrix) ASSERT_EQ(std::fabs(element), 1);
  }

  constexpr int64_t kWidth = 3;
  std::vector<double> x(static_cast<size_t>(n * kWidth));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i + 1));
  for (const bool transpose : {false, true}) {
    std::vector<double> y = x;
    std::vector<double> scratch(x.size());
    rotation->Multiply(transpose, y.data(), kWidth, scratch.data());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t w = 0; w < kWidth; ++w) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += matrix[static_cast<size_t>(transpose ? j * n + i : i * n + j)] *
                 x[static_cast<size_t>(j * kWidth + w)];
        ASSERT_NEAR(y[static_cast<size_t>(i * kWidth + w)], sum / std::sqrt(square), 1e-12);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RotationOfType,
                         ::testing::Values(std::tuple(TransformType::kHadamard, 1),
                                           std::tuple(TransformType::kHadamard, 64),
                                           std::tuple(TransformType::kRandomHadamard, 64),
                                           std::tuple(TransformType::kRandomHadamard, 96),
                                           std::tuple(TransformType::kRandomHadamard, 36),
                                           std::tuple(TransformType::kRandomMatrix, 30)));

bool SameBytes(const Rotation& a, const Rotation& b) {
  const Tensor left = a.Stored(DType::kF64);
  const Tensor right = b.Stored(DType::kF64);
  return std::memcmp(left.view().bytes, right.view().bytes,
                     static_cast<size_t>(left.num_bytes())) == 0;
}

TEST(Rotation, WhatIsRandomIsTheSeedsAndTheGroups) {
  for (const TransformType type : {TransformType::kRandomHadamard, TransformType::kRandomMatrix}) {
    const Rotation first = Rotation::Make(type, "R1", 48, 1).value();
    EXPECT_TRUE(SameBytes(first, Rotation::Make(type, "R1", 48, 1).value()));
    EXPECT_FALSE(SameBytes(first, Rotation::Make(type, "R1", 48, 2).value()));
    EXPECT_FALSE(SameBytes(first, Rotation::Make(type, "R4", 48, 1).value()));
  }
}

TEST(Rotation, ASizeWithoutMatrixIsRefusedWithWhatFits) {
  const auto hadamard = Rotation::Make(TransformType::kHadamard, "R4", 384, 0);
  ASSERT_FALSE(hadamard.ok());
  EXPECT_NE(hadamard.status().message().find("transform_block_size of 128"), std::string::npos)
      << hadamard.status().message();
  const auto random = Rotation::Make(TransformType::kRandomHadamard, "R4", 172, 0);
  ASSERT_FALSE(random.ok());
  EXPECT_NE(random.status().message().find("size 172 is known here"), std::string::npos)
      << random.status().message();
}

// W [n, k] -> columns^T W diag(gains) rows, with plain loops.
TEST(RotateWeight, BothSidesAndGainsInFloat64) {
  const TestContext context(2);
  constexpr int64_t kN = 40;
  constexpr int64_t kK = 24;
  const auto columns =
      std::make_shared<const Rotation>(Rotation::Make(TransformType::kHadamard, "a", 8, 0).value());
  const auto rows = std::make_shared<const Rotation>(
      Rotation::Make(TransformType::kRandomHadamard, "b", 24, 0).value());
  std::vector<float> w(static_cast<size_t>(kN * kK));
  for (size_t i = 0; i < w.size(); ++i) w[i] = std::sin(static_cast<float>(i));
  std::vector<float> gains(static_cast<size_t>(kK));
  for (size_t j = 0; j < gains.size(); ++j) gains[j] = 1 + static_cast<float>(j) / 8;
  const Tensor weight = FromFloat(w, DType::kF32, {kN, kK}).value();
  const WeightRotation rotation{.rows = {{rows, true}}, .columns = {{columns, true}}};
  const auto rotated = RotateWeight(weight, gains, rotation, DType::kF32, context.context);
  ASSERT_OK(rotated);
  const auto only_rows = RotateWeight(weight, gains, {.rows = {{rows, true}}, .columns = {}},
                                      DType::kBF16, context.context);
  ASSERT_OK(only_rows);

  const Tensor r = rows->Stored(DType::kF64);
  const Tensor c = columns->Stored(DType::kF64);
  const auto right = [&](int64_t i, int64_t j) {  // W diag(gains) R
    double sum = 0;
    for (int64_t l = 0; l < kK; ++l)
      sum += static_cast<double>(w[static_cast<size_t>(i * kK + l)]) *
             static_cast<double>(gains[static_cast<size_t>(l)]) *
             r.data<double>()[static_cast<size_t>(l * kK + j)];
    return sum / std::sqrt(24.0);
  };
  const Tensor floats = ToFloatTensor(*only_rows).value();
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j < kK; ++j) {
      const auto at = static_cast<size_t>(i * kK + j);
      ASSERT_EQ(floats.data<float>()[at], RoundToBf16(static_cast<float>(right(i, j))));
      double sum = 0;
      for (int64_t l = 0; l < 8; ++l)
        sum += c.data<double>()[static_cast<size_t>(l * 8 + i % 8)] * right(i - i % 8 + l, j);
      ASSERT_NEAR(rotated->data<float>()[at], sum / std::sqrt(8.0), 1e-6);
    }
  }
}

TEST(RotateBias, AsTheColumnsOfTheWeight) {
  const auto rotation =
      std::make_shared<const Rotation>(Rotation::Make(TransformType::kHadamard, "a", 2, 0).value());
  const Tensor bias = FromFloat(std::vector<float>{3, 1, 0, 2}, DType::kF32, {4}).value();
  const auto rotated = RotateBias(bias, {{rotation, true}});
  ASSERT_OK(rotated);
  const std::vector<float> expected = {4, 2, 2, -2};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(rotated->data<float>()[i], expected[i] / std::sqrt(2.0F), 1e-6);
}

}  // namespace
}  // namespace octavo
