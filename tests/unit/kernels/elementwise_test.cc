// RMSNorm, rotary embedding, SiluMul and the sum of rows: row-wise kernels against float64.
#include <bit>
#include <numbers>

#include "kernel_testing.h"
#include "kernels/activate/activate.h"
#include "kernels/add_rows/add_rows.h"
#include "kernels/rms_norm/kernels.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/kernels.h"
#include "kernels/rope/rope.h"
#include "kernels/silu_mul/kernels.h"
#include "kernels/silu_mul/silu_mul.h"

namespace octavo {
namespace {

constexpr int64_t kWidths[] = {1, 7, 16, 17, 63, 64, 65, 100, 576};

TEST(RmsNorm, EveryKernelIsWithinBounds) {
  ExpectListObeysCaps(RmsNormKernels());
  Rng rng(40);
  for (const int64_t k : kWidths) {
    const int64_t m = 3;
    const int64_t ldx = k + 1;
    const std::vector<float> x = RandomFloats(rng, m * ldx, 10.0);
    const std::vector<float> weight = RandomFloats(rng, k);
    ForEachKernel(RmsNormKernels(), [&](const RmsNormKernel& kernel) {
      ThreadPool pool(1);
      std::vector<float> y(x.size(), kUnset);
      RmsNorm(x.data(), ldx, m, weight, 1e-5F, y.data(), ldx, kernel.isa, pool);
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < k; ++j) {
          sum += std::pow(Wide(x[static_cast<size_t>(i * ldx + j)]), 2);
        }
        const double factor = 1 / std::sqrt(sum / static_cast<double>(k) + Wide(1e-5F));
        for (int64_t j = 0; j < k; ++j) {
          const auto at = static_cast<size_t>(i * ldx + j);
          const double expected = Wide(x[at]) * factor * Wide(weight[static_cast<size_t>(j)]);
          // The sum's rounding, halved by the root, and four more operations.
          const double bound = (static_cast<double>(k) / 2 + 4) * 0x1p-24;
          EXPECT_NEAR(Wide(y[at]), expected, bound * std::abs(expected)) << k << " " << j;
        }
        EXPECT_EQ(y[static_cast<size_t>(i * ldx + k)], kUnset);
      }
    });
  }
}

TEST(RmsNorm, InPlaceAndByThreads) {
  Rng rng(41);
  const std::vector<float> x = RandomFloats(rng, 100 * 500);
  const std::vector<float> weight = RandomFloats(rng, 500);
  ForEachKernel(RmsNormKernels(), [&](const RmsNormKernel& kernel) {
    ThreadPool one(1);
    std::vector<float> expected(x.size());
    RmsNorm(x.data(), 500, 100, weight, 1e-6F, expected.data(), 500, kernel.isa, one);
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      std::vector<float> y = x;
      RmsNorm(y.data(), 500, 100, weight, 1e-6F, y.data(), 500, kernel.isa, pool);
      ExpectSameBits(y, expected);
    }
  });
}

TEST(Rope, EveryKernelFollowsTheOrder) {
  ExpectListObeysCaps(RopeKernels());
  Rng rng(42);
  struct Sizes {
    int64_t heads, head_dim, rotary_dim;
  };
  for (const Sizes sizes : {Sizes{3, 64, 64}, Sizes{2, 8, 8}, Sizes{1, 10, 6}, Sizes{2, 96, 48},
                            Sizes{1, 34, 34}, Sizes{1, 4, 0}}) {
    const int64_t m = 4;
    const int64_t row = sizes.heads * sizes.head_dim;
    const int64_t half = sizes.rotary_dim / 2;
    const std::vector<float> x = RandomFloats(rng, m * row);
    const std::vector<float> cos = RandomFloats(rng, m * half);
    const std::vector<float> sin = RandomFloats(rng, m * half);
    std::vector<float> expected = x;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t head = 0; head < sizes.heads; ++head) {
        for (int64_t d = 0; d < half; ++d) {
          const auto low = static_cast<size_t>(i * row + head * sizes.head_dim + d);
          const size_t high = low + static_cast<size_t>(half);
          const auto turn = static_cast<size_t>(i * half + d);
          expected[low] = x[low] * cos[turn] - x[high] * sin[turn];
          expected[high] = x[high] * cos[turn] + x[low] * sin[turn];
        }
      }
    }
    ForEachKernel(RopeKernels(), [&](const RopeKernel& kernel) {
      EXPECT_EQ(kernel.exactness, Exactness::kOrdered);
      for (const int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        std::vector<float> y = x;
        ApplyRope(y.data(), row, m, sizes.heads, sizes.head_dim, sizes.rotary_dim,
                  RopePairs::kHalves, cos.data(), sin.data(), kernel.isa, pool);
        ExpectSameBits(y, expected);
      }
    });
  }
}

// Pairs that are neighbours, put half a head apart, turn as those do.
TEST(Rope, NeighboursTurnAsHalvesDo) {
  constexpr int64_t kHeads = 2;
  constexpr int64_t kHeadDim = 10;
  constexpr int64_t kRotary = 6;
  Rng rng(44);
  const std::vector<float> x = RandomFloats(rng, 3 * kHeads * kHeadDim);
  const std::vector<float> cos = RandomFloats(rng, 3 * kRotary / 2);
  const std::vector<float> sin = RandomFloats(rng, 3 * kRotary / 2);
  const auto place = [](int64_t i) {
    const int64_t d = i % kHeadDim;
    if (d >= kRotary) return static_cast<size_t>(i);
    return static_cast<size_t>(i - d + (d % 2 == 0 ? d / 2 : kRotary / 2 + d / 2));
  };
  std::vector<float> halves(x.size());
  for (size_t i = 0; i < x.size(); ++i) halves[place(static_cast<int64_t>(i))] = x[i];
  ThreadPool pool(2);
  std::vector<float> y = x;
  const auto apply = [&](std::vector<float>* values, RopePairs pairs) {
    ApplyRope(values->data(), kHeads * kHeadDim, 3, kHeads, kHeadDim, kRotary, pairs, cos.data(),
              sin.data(), Isa::kRef, pool);
  };
  apply(&y, RopePairs::kNeighbours);
  apply(&halves, RopePairs::kHalves);
  EXPECT_NE(y, x);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], halves[place(static_cast<int64_t>(i))]) << i;
}

TEST(ActivateAndMultiply, IsTheFunctionTimesUp) {
  const std::pair<Activation, double (*)(double)> functions[] = {
      {Activation::kSilu, [](double x) { return x / (1 + std::exp(-x)); }},
      {Activation::kGelu, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {Activation::kGeluTanh,
       [](double x) {
         return x / 2 *
                (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
       }},
      {Activation::kRelu, [](double x) { return std::max(x, 0.0); }}};
  constexpr int64_t kColumns = 37;
  Rng rng(45);
  const std::vector<float> x = RandomFloats(rng, 2 * 2 * kColumns, 8.0);
  ThreadPool pool(2);
  for (const auto& [activation, function] : functions) {
    std::vector<float> y(2 * kColumns, kUnset);
    ActivateAndMultiply(activation, x.data(), 2 * kColumns, 2, kColumns, y.data(), kColumns,
                        Isa::kRef, pool);
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        const double gate = Wide(x[static_cast<size_t>(i * 2 * kColumns + j)]);
        const double up = Wide(x[static_cast<size_t>(i * 2 * kColumns + kColumns + j)]);
        // Near -4 what is left of 1 + erf or 1 + tanh has few bits.
        EXPECT_NEAR(Wide(y[static_cast<size_t>(i * kColumns + j)]), function(gate) * up,
                    0x1p-22 * std::abs(gate * up))
            << gate;
      }
    }
  }
}

TEST(SiluMul, EveryKernelIsWithinBounds) {
  ExpectListObeysCaps(SiluMulKernels());
  Rng rng(43);
  for (const int64_t n : kWidths) {
    const std::vector<float> x = RandomFloats(rng, 2 * 2 * n, 20.0);
    ForEachKernel(SiluMulKernels(), [&](const SiluMulKernel& kernel) {
      ThreadPool pool(1);
      std::vector<float> y(static_cast<size_t>(2 * n), kUnset);
      SiluMul(x.data(), 2 * n, 2, n, y.data(), n, kernel.isa, pool);
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const double gate = Wide(x[static_cast<size_t>(i * 2 * n + j)]);
          const double up = Wide(x[static_cast<size_t>(i * 2 * n + n + j)]);
          const double expected = gate / (1 + std::exp(-gate)) * up;
          EXPECT_NEAR(Wide(y[static_cast<size_t>(i * n + j)]), expected,
                      6 * 0x1p-24 * std::abs(expected))
              << gate;
        }
      }
    });
  }
}

// Each float of a dense grid from far below to far above exp's range.
TEST(SiluMul, WholeRange) {
  std::vector<float> gate;
  for (int i = -16000; i <= 16000; ++i) gate.push_back(static_cast<float>(i) / 128.0F);
  for (const float value : {-3e38F, 3e38F, -0.0F, 1e-40F, -1e-40F, -87.4F, -88.73F, -104.0F}) {
    gate.push_back(value);
  }
  const auto n = static_cast<int64_t>(gate.size());
  std::vector<float> x = gate;
  x.resize(gate.size() * 2, 1.0F);
  ForEachKernel(SiluMulKernels(), [&](const SiluMulKernel& kernel) {
    ThreadPool pool(2);
    std::vector<float> y(gate.size());
    SiluMul(x.data(), 2 * n, 1, n, y.data(), n, kernel.isa, pool);
    for (size_t j = 0; j < gate.size(); ++j) {
      const double g = Wide(gate[j]);
      const double expected = g / (1 + std::exp(-g));
      // Where the true result nears the denormals, only its size matters.
      const double bound = std::max(6 * 0x1p-24 * std::abs(expected), 1e-36);
      EXPECT_NEAR(Wide(y[j]), expected, bound) << g;
    }
  });
}

TEST(SiluMul, NanStaysNan) {
  const std::vector<float> x = {std::nanf(""), 1.0F, 1.0F, std::nanf("")};
  ForEachKernel(SiluMulKernels(), [&](const SiluMulKernel& kernel) {
    ThreadPool pool(1);
    std::vector<float> y(2);
    SiluMul(x.data(), 4, 1, 2, y.data(), 2, kernel.isa, pool);
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_TRUE(std::isnan(y[1]));
  });
}

TEST(AddRows, AddsWhatIsInTheRowsAndNoMore) {
  Rng rng(45);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const int64_t m = 70;
    const int64_t k = 601;
    const std::vector<float> y = RandomFloats(rng, m * (k + 1));
    const std::vector<float> x = RandomFloats(rng, m * (k + 2));
    std::vector<float> sum = x;
    AddRows(y.data(), k + 1, m, k, sum.data(), k + 2, pool);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < k + 2; ++j) {
        const auto at = static_cast<size_t>(i * (k + 2) + j);
        const float addend = j < k ? y[static_cast<size_t>(i * (k + 1) + j)] : 0.0F;
        ASSERT_EQ(sum[at], x[at] + addend);
      }
    }
  }
}

}  // namespace
}  // namespace octavo
