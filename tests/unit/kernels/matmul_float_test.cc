#include "kernels/matmul_float/matmul_float.h"

#include <bit>

#include "kernel_testing.h"
#include "kernels/gram/gram.h"
#include "kernels/matmul_float/kernels.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

size_t At(int64_t i) {
  return static_cast<size_t>(i);
}

// |y - exact| <= 2 k eps sum |x w|, eps = 2^-24, and the bias's own rounding.
void ExpectWithinBounds(const std::vector<float>& y, int64_t ldy, const std::vector<float>& x,
                        int64_t ldx, const std::vector<float>& w, const std::vector<float>& bias,
                        int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0 : Wide(bias[At(j)]);
      double norm = std::abs(sum);
      for (int64_t l = 0; l < k; ++l) {
        const double product = Wide(x[At(i * ldx + l)]) * Wide(w[At(j * k + l)]);
        sum += product;
        norm += std::abs(product);
      }
      const double bound = 2 * (static_cast<double>(k) + 1) * 0x1p-24 * norm;
      ASSERT_NEAR(Wide(y[At(i * ldy + j)]), sum, bound) << i << ", " << j;
    }
  }
}

TEST(MatmulFloat, ListObeysCaps) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (const Isa cap : {Isa::kRef, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
      EXPECT_LE(BestFloatMatmulKernel(dtype, cap).isa, cap);
      EXPECT_EQ(BestFloatMatmulKernel(dtype, cap).dtype, dtype);
    }
  }
}

TEST(MatmulFloat, EveryKernelIsWithinBounds) {
  constexpr uint64_t kSeed = 50;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  const int64_t shapes[][3] = {{1, 1, 1},     {1, 64, 576},   {2, 5, 43},    {3, 33, 172},
                               {4, 66, 15},   {7, 10, 17},    {8, 12, 100},  {16, 130, 64},
                               {17, 130, 65}, {14, 19, 1700}, {33, 130, 48}, {70, 300, 33}};
  for (const auto& shape : shapes) {
    const int64_t m = shape[0];
    const int64_t n = shape[1];
    const int64_t k = shape[2];
    SCOPED_TRACE(testing::Message() << "m n k " << m << " " << n << " " << k);
    const int64_t ldx = k + 3;
    const int64_t ldy = n + 1;
    const std::vector<float> x = RandomFloats(rng, m * ldx);
    const std::vector<float> values = RandomFloats(rng, n * k);
    const std::vector<float> bias = n % 2 == 0 ? RandomFloats(rng, n) : std::vector<float>();
    ForEachKernel(FloatMatmulKernels(), [&](const FloatMatmulKernel& kernel) {
      const Tensor stored = FromFloat(values, kernel.dtype, {n, k}).value();
      const Tensor rounded = ToFloatTensor(stored).value();
      const std::span<const float> w = rounded.data<float>();
      std::vector<float> first;
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        std::vector<float> y(At(m * ldy), kUnset);
        MultiplyFloat(stored, bias, x.data(), ldx, m, y.data(), ldy, kernel.isa, pool);
        if (threads == 1) {
          ExpectWithinBounds(y, ldy, x, ldx, {w.begin(), w.end()}, bias, m, n, k);
          for (int64_t i = 0; i < m; ++i) EXPECT_EQ(y[At(i * ldy + n)], kUnset);
          first = y;
        }
        ExpectSameBits(y, first);
      }
    });
  }
}

// Requests that share a pass get what each gets alone: up to 32 rows, the scheduler's most.
TEST(MatmulFloat, ARowDoesNotDependOnHowManyThereAre) {
  constexpr int64_t kMost = 32;
  constexpr int64_t kN = 19;
  Rng rng(53);
  ThreadPool pool(2);
  for (const int64_t k : {1, 40, 1700}) {
    const std::vector<float> x = RandomFloats(rng, kMost * k);
    const std::vector<float> values = RandomFloats(rng, kN * k);
    ForEachKernel(FloatMatmulKernels(), [&](const FloatMatmulKernel& kernel) {
      const Tensor w = FromFloat(values, kernel.dtype, {kN, k}).value();
      std::vector<float> alone(At(kMost * kN));
      for (int64_t i = 0; i < kMost; ++i) {
        MultiplyFloat(w, {}, x.data() + i * k, k, 1, alone.data() + i * kN, kN, kernel.isa, pool);
      }
      for (const int64_t m : {2, 4, 7, 8, 9, 10, 11, 12, 17, 32}) {
        std::vector<float> y(At(m * kN));
        MultiplyFloat(w, {}, x.data(), k, m, y.data(), kN, kernel.isa, pool);
        ExpectSameBits(y, {alone.begin(), alone.begin() + m * kN});
      }
    });
  }
}

TEST(MatmulFloat, UnalignedWeights) {
  Rng rng(51);
  const std::vector<float> x = RandomFloats(rng, 2 * 20);
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    const Tensor w = FromFloat(RandomFloats(rng, 6 * 20), dtype, {6, 20}).value();
    std::vector<std::byte> file(At(w.num_bytes()) + 1);
    std::copy_n(w.view().bytes, w.num_bytes(), file.begin() + 1);
    const TensorView view{.dtype = dtype, .shape = {6, 20}, .bytes = file.data() + 1};
    for (const Isa isa : IsasUpTo(DetectIsa())) {
      ThreadPool pool(1);
      std::vector<float> expected(12);
      std::vector<float> y(12);
      MultiplyFloat(w, {}, x.data(), 20, 2, expected.data(), 6, isa, pool);
      MultiplyFloat(view, {}, x.data(), 20, 2, y.data(), 6, isa, pool);
      ExpectSameBits(y, expected);
    }
  }
}

TEST(SgemmTile, TransposesAndAccumulates) {
  Rng rng(52);
  const int64_t m = 7;
  const int64_t n = 9;
  const int64_t k = 11;
  const std::vector<float> a = RandomFloats(rng, m * k);
  const std::vector<float> b = RandomFloats(rng, k * n);
  const std::vector<float> c = RandomFloats(rng, m * n);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      std::vector<float> y = c;
      SgemmTile(transpose_a, transpose_b, m, n, k, 2.0F, a.data(), transpose_a ? m : k, b.data(),
                transpose_b ? k : n, 0.5F, y.data(), n, DetectIsa());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double expected = 0.5 * Wide(c[At(i * n + j)]);
          for (int64_t l = 0; l < k; ++l) {
            expected += 2 * Wide(a[At(transpose_a ? l * m + i : i * k + l)]) *
                        Wide(b[At(transpose_b ? j * k + l : l * n + j)]);
          }
          EXPECT_NEAR(Wide(y[At(i * n + j)]), expected, 1e-4);
        }
      }
    }
  }
}

TEST(Gram, SymmetricWithinBoundsAndEqualOnAllThreadCounts) {
  Rng rng(53);
  const int64_t m = 30;
  const int64_t k = 450;  // three tiles a side, the last one narrow
  const int64_t ldx = k + 2;
  const std::vector<float> x = RandomFloats(rng, m * ldx);
  std::vector<float> start(At(k * k), 0.0F);
  for (int64_t i = 0; i < k; ++i) start[At(i * k + i)] = 1;
  for (const Isa isa : IsasUpTo(DetectIsa())) {
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      std::vector<float> h = start;
      AddGram(x.data(), ldx, m, k, 0.5F, h, isa, pool);
      MirrorUpper(k, h, pool);
      if (threads == 1) first = h;
      ExpectSameBits(h, first);
    }
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        double expected = Wide(start[At(i * k + j)]);
        double norm = std::abs(expected);
        for (int64_t l = 0; l < m; ++l) {
          const double product = 0.5 * Wide(x[At(l * ldx + i)]) * Wide(x[At(l * ldx + j)]);
          expected += product;
          norm += std::abs(product);
        }
        ASSERT_NEAR(Wide(first[At(i * k + j)]), expected, 2 * (m + 2) * 0x1p-24 * norm);
        ASSERT_EQ(first[At(i * k + j)], first[At(j * k + i)]);
      }
    }
  }
}

// Packing cuts the rows of x into pieces, and the columns of w too where the matrix is large.
TEST(Gram, ManyRows) {
  Rng rng(54);
  const int64_t m = 2100;
  const int64_t k = 5;
  const std::vector<float> x = RandomFloats(rng, m * k);
  ThreadPool pool(2);
  std::vector<float> h(At(k * k), 0.0F);
  AddGram(x.data(), k, m, k, 1.0F, h, DetectIsa(), pool);
  for (int64_t i = 0; i < k; ++i) {
    double expected = 0;
    for (int64_t l = 0; l < m; ++l) expected += Wide(x[At(l * k)]) * Wide(x[At(l * k + i)]);
    EXPECT_NEAR(Wide(h[At(i)]), expected, 1e-3 * m);
  }
}

TEST(MatmulFloat, ALargeMatrixIsPackedInPieces) {
  Rng rng(55);
  const int64_t m = 40;
  const int64_t n = 200;
  const int64_t k = 30'000;
  const std::vector<float> x = RandomFloats(rng, m * k);
  const std::vector<float> w = RandomFloats(rng, n * k, 0.01);
  const Tensor stored = FromFloat(w, DType::kF32, {n, k}).value();
  ThreadPool pool(2);
  std::vector<float> y(At(m * n));
  MultiplyFloat(stored, {}, x.data(), k, m, y.data(), n, DetectIsa(), pool);
  for (const int64_t i : {int64_t{0}, m - 1}) {
    for (int64_t j = 0; j < n; ++j) {
      double expected = 0;
      for (int64_t l = 0; l < k; ++l) expected += Wide(x[At(i * k + l)]) * Wide(w[At(j * k + l)]);
      EXPECT_NEAR(Wide(y[At(i * n + j)]), expected, 1e-2);
    }
  }
}

}  // namespace
}  // namespace octavo
