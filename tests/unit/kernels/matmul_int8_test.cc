#include "kernels/matmul_int8/matmul_int8.h"

#include <algorithm>

#include "kernel_testing.h"
#include "kernels/matmul_int8/kernels.h"

namespace octavo {
namespace {

TensorView ViewOf(const std::vector<int8_t>& values, int64_t rows, int64_t columns) {
  return {.dtype = DType::kI8,
          .shape = {rows, columns},
          .bytes = reinterpret_cast<const std::byte*>(values.data())};
}

// One problem and its exact answer, computed the plain way.
struct Problem {
  int64_t m, n, k;
  std::vector<int8_t> q, w;
  std::vector<float> row_scales, weight_scales, bias, expected;
  std::vector<int32_t> zero_points;  // [m] or empty

  Problem(Rng& rng, int64_t m_, int64_t n_, int64_t k_, bool with_bias, bool asymmetric = false)
      : m(m_), n(n_), k(k_) {
    q = RandomInt8(rng, m * k);
    w = RandomInt8(rng, n * k);
    row_scales = RandomFloats(rng, m);
    weight_scales = RandomFloats(rng, n);
    if (with_bias) bias = RandomFloats(rng, n);
    if (asymmetric) {
      for (const int8_t zero_point : RandomInt8(rng, m)) zero_points.push_back(zero_point);
    }
    Solve();
  }

  Int8Rows rows() const {
    return {.codes = q.data(),
            .scales = row_scales.data(),
            .zero_points = zero_points.empty() ? nullptr : zero_points.data(),
            .m = m};
  }

  void Solve() {
    expected.clear();
    for (int64_t i = 0; i < m; ++i) {
      const int64_t zero_point = zero_points.empty() ? 0 : zero_points[At(i)];
      for (int64_t j = 0; j < n; ++j) {
        int64_t sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += (q[At(i * k + l)] - zero_point) * w[At(j * k + l)];
        float value = static_cast<float>(sum) * (row_scales[At(i)] * weight_scales[At(j)]);
        if (!bias.empty()) value += bias[At(j)];
        expected.push_back(value);
      }
    }
  }

  // y with two more floats a row, which must stay as they were.
  std::vector<float> Run(Isa isa, int threads) const {
    ThreadPool pool(threads);
    const TensorView view = ViewOf(w, n, k);
    const Int8Weights packed = Int8Weights::Pack({&view, 1}, isa, pool);
    const int64_t ldy = n + 2;
    std::vector<float> padded(At(m * ldy), kUnset);
    MultiplyInt8(packed, rows(), weight_scales, bias, padded.data(), ldy, pool);
    std::vector<float> y;
    for (int64_t i = 0; i < m; ++i) {
      const auto row = padded.begin() + i * ldy;
      y.insert(y.end(), row, row + n);
      EXPECT_EQ(row[n], kUnset);
      EXPECT_EQ(row[n + 1], kUnset);
    }
    return y;
  }

  static size_t At(int64_t i) { return static_cast<size_t>(i); }
};

TEST(MatmulInt8, ListObeysCaps) {
  ExpectListObeysCaps(Int8MatmulKernels());
}

TEST(MatmulInt8, EveryKernelIsExact) {
  constexpr uint64_t kSeed = 20;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  const int64_t shapes[][3] = {{1, 1, 1},     {1, 64, 4},    {2, 65, 3},    {3, 63, 5},
                               {5, 17, 43},   {6, 43, 172},  {7, 130, 64},  {13, 192, 100},
                               {97, 80, 33},  {200, 70, 16}, {1, 576, 576}, {4, 300, 257},
                               {100, 129, 7}, {96, 64, 8},   {12, 1, 1000}};
  for (const auto& shape : shapes) {
    for (const int options : {0, 1, 2, 3}) {
      const Problem problem(rng, shape[0], shape[1], shape[2], options % 2 == 1, options >= 2);
      SCOPED_TRACE(testing::Message() << "m n k " << shape[0] << " " << shape[1] << " " << shape[2]
                                      << " options " << options);
      ForEachKernel(Int8MatmulKernels(), [&](const Int8MatmulKernel& kernel) {
        EXPECT_EQ(kernel.exactness, Exactness::kExact);
        ExpectSameBits(problem.Run(kernel.isa, 1), problem.expected);
      });
    }
  }
}

TEST(MatmulInt8, ThreadsDoNotChangeResults) {
  Rng rng(21);
  const Problem problem(rng, 210, 330, 68, true, true);
  ForEachKernel(Int8MatmulKernels(), [&](const Int8MatmulKernel& kernel) {
    for (const int threads : {1, 2, 3}) {
      ExpectSameBits(problem.Run(kernel.isa, threads), problem.expected);
    }
  });
}

TEST(MatmulInt8, ExtremesDoNotOverflow) {
  Rng rng(22);
  for (const int8_t weight : {int8_t{-128}, int8_t{127}}) {
    for (const int8_t code : {int8_t{-128}, int8_t{127}}) {
      Problem problem(rng, 2, 3, 65536, false);
      std::fill(problem.q.begin(), problem.q.end(), code);
      std::fill(problem.w.begin(), problem.w.end(), weight);
      for (const int32_t zero_point : {0, -128, 127}) {
        problem.zero_points.assign(2, zero_point);
        problem.Solve();
        ForEachKernel(Int8MatmulKernels(), [&](const Int8MatmulKernel& kernel) {
          ExpectSameBits(problem.Run(kernel.isa, 1), problem.expected);
        });
      }
    }
  }
}

TEST(MatmulInt8, PartsStackAlongN) {
  Rng rng(23);
  const Problem problem(rng, 9, 100, 52, true);
  const std::vector<int8_t> low(problem.w.begin(), problem.w.begin() + 37 * 52);
  const std::vector<int8_t> high(problem.w.begin() + 37 * 52, problem.w.end());
  const TensorView parts[] = {ViewOf(low, 37, 52), ViewOf(high, 63, 52)};
  ThreadPool pool(2);
  for (const Isa isa : IsasUpTo(DetectIsa())) {
    const Int8Weights packed = Int8Weights::Pack(parts, isa, pool);
    EXPECT_EQ(packed.n(), 100);
    EXPECT_EQ(packed.k(), 52);
    EXPECT_LE(packed.kernel().isa, isa);
    std::vector<float> y(900);
    MultiplyInt8(packed, problem.rows(), problem.weight_scales, problem.bias, y.data(), 100, pool);
    ExpectSameBits(y, problem.expected);
  }
}

TEST(MatmulInt8, NanScaleGivesNan) {
  Rng rng(24);
  Problem problem(rng, 2, 5, 8, false);
  problem.row_scales[1] = std::nanf("");
  problem.Solve();
  ForEachKernel(Int8MatmulKernels(), [&](const Int8MatmulKernel& kernel) {
    const std::vector<float> y = problem.Run(kernel.isa, 1);
    ExpectSameBits(y, problem.expected);
    EXPECT_TRUE(std::isnan(y[5]));
  });
}

TEST(MatmulInt8, OneCopyInMemory) {
  Rng rng(25);
  const std::vector<int8_t> w = RandomInt8(rng, 576 * 576);
  const TensorView view = ViewOf(w, 576, 576);
  ThreadPool pool(1);
  for (const Isa isa : IsasUpTo(DetectIsa())) {
    const int64_t column_sums = 576 * 4;
    EXPECT_EQ(Int8Weights::Pack({&view, 1}, isa, pool).packed_bytes(), 576 * 576 + column_sums);
  }
}

}  // namespace
}  // namespace octavo
