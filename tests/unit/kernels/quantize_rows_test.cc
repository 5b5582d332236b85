#include "kernels/quantize_rows/quantize_rows.h"

#include <bit>
#include <limits>

#include "kernel_testing.h"
#include "kernels/quantize_rows/kernels.h"

namespace octavo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Quantized {
  std::vector<int8_t> codes;
  std::vector<float> scales;
};

Quantized Quantize(const std::vector<float>& x, int64_t m, int64_t k, ActivationRule rule, Isa isa,
                   int threads = 1) {
  ThreadPool pool(threads);
  Quantized result{std::vector<int8_t>(static_cast<size_t>(m * k), int8_t{99}),
                   std::vector<float>(static_cast<size_t>(m), kUnset)};
  QuantizeRowsInt8(x.data(), k, m, k, rule, result.codes.data(), result.scales.data(), isa, pool);
  return result;
}

template <typename Check>
void ForEachKernelAndRule(const Check& check) {
  ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
    for (const ActivationRule rule : {ActivationRule::kEngine, ActivationRule::kLibrary}) {
      SCOPED_TRACE(rule == ActivationRule::kEngine ? "engine" : "library");
      check(kernel.isa, rule);
    }
  });
}

TEST(QuantizeRows, ListObeysCaps) {
  ExpectListObeysCaps(QuantizeRowsKernels());
}

TEST(QuantizeRows, EngineRuleByHand) {
  ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
    // 127 / 254 = 0.5: ties go to even.
    const Quantized result =
        Quantize({254, -254, 1, 3, -1, -3, 5, 0.5F}, 1, 8, ActivationRule::kEngine, kernel.isa);
    EXPECT_EQ(result.scales, std::vector<float>{2.0F});
    EXPECT_EQ(result.codes, (std::vector<int8_t>{127, -127, 0, 2, 0, -2, 2, 0}));
  });
}

TEST(QuantizeRows, LibraryRuleByHand) {
  ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
    // Scale 2: the negative maximum ties at -127.5 and goes to -128, the positive one is clamped.
    const Quantized result =
        Quantize({255, -255, 1, 3, -1, -5, 2}, 1, 7, ActivationRule::kLibrary, kernel.isa);
    EXPECT_EQ(result.scales, std::vector<float>{2.0F});
    EXPECT_EQ(result.codes, (std::vector<int8_t>{127, -128, 0, 2, 0, -2, 1}));
  });
}

TEST(QuantizeRows, EveryKernelIsExact) {
  constexpr uint64_t kSeed = 30;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (const int64_t k : {1, 2, 15, 16, 17, 33, 100, 576, 1001}) {
    for (const double scale : {1e-36, 1e-3, 1.0, 1e30}) {
      const int64_t m = 5;
      std::vector<float> x = RandomFloats(rng, m * k, scale);
      // Whole multiples of half a step: many ties.
      for (int64_t j = 0; j < k; ++j) {
        x[static_cast<size_t>(j)] = static_cast<float>(rng.Below(509)) / 2 - 127.0F;
      }
      x[0] = 127;
      ForEachKernelAndRule([&](Isa isa, ActivationRule rule) {
        const Quantized expected = Quantize(x, m, k, rule, Isa::kRef);
        const Quantized actual = Quantize(x, m, k, rule, isa);
        EXPECT_EQ(actual.codes, expected.codes) << k;
        ExpectSameBits(actual.scales, expected.scales);
      });
    }
  }
}

TEST(QuantizeRows, RowsThatHaveNoScale) {
  for (const int64_t k : {3, 16, 40}) {
    for (const int64_t at : {int64_t{0}, k - 1}) {
      ForEachKernelAndRule([&](Isa isa, ActivationRule rule) {
        const auto row_with = [&](float value) {
          std::vector<float> x(static_cast<size_t>(k), 0.0F);
          x[0] = value == 0 ? -0.0F : 1.0F;
          x[static_cast<size_t>(at)] = value;
          return x;
        };
        const std::vector<int8_t> zeros(static_cast<size_t>(k), int8_t{0});
        for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
          const Quantized result = Quantize(row_with(bad), 1, k, rule, isa);
          EXPECT_EQ(result.codes, zeros);
          EXPECT_TRUE(std::isnan(result.scales[0])) << bad;
        }
        const float zero_scale = rule == ActivationRule::kEngine ? 0.0F : 0x1p-23F;
        const Quantized zero = Quantize(std::vector<float>(zeros.size(), -0.0F), 1, k, rule, isa);
        EXPECT_EQ(zero.codes, zeros);
        EXPECT_EQ(zero.scales[0], zero_scale);
        const Quantized tiny = Quantize(std::vector<float>(zeros.size(), 1e-40F), 1, k, rule, isa);
        EXPECT_EQ(tiny.codes, zeros);
        EXPECT_EQ(tiny.scales[0], zero_scale);
      });
    }
  }
}

TEST(QuantizeRows, ThreadsDoNotChangeResults) {
  Rng rng(31);
  const std::vector<float> x = RandomFloats(rng, 70 * 900);
  ForEachKernelAndRule([&](Isa isa, ActivationRule rule) {
    const Quantized one = Quantize(x, 70, 900, rule, isa, 1);
    for (const int threads : {2, 3}) {
      const Quantized several = Quantize(x, 70, 900, rule, isa, threads);
      EXPECT_EQ(several.codes, one.codes);
      ExpectSameBits(several.scales, one.scales);
    }
  });
}

struct Asymmetric {
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
};

Asymmetric QuantizeAsymmetric(const std::vector<float>& x, int64_t m, int64_t k, Isa isa,
                              int threads = 1) {
  ThreadPool pool(threads);
  Asymmetric result{std::vector<int8_t>(static_cast<size_t>(m * k), int8_t{99}),
                    std::vector<float>(static_cast<size_t>(m), kUnset),
                    std::vector<int32_t>(static_cast<size_t>(m), 999)};
  QuantizeRowsInt8Asymmetric(x.data(), k, m, k, result.codes.data(), result.scales.data(),
                             result.zero_points.data(), isa, pool);
  return result;
}

TEST(QuantizeRows, AsymmetricByHand) {
  ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
    // Scale 1, zero point -128 + 100; halves are ties.
    Asymmetric result = QuantizeAsymmetric({-100, 155, 0, 0.5F, 1.5F, -0.5F}, 1, 6, kernel.isa);
    EXPECT_EQ(result.scales, std::vector<float>{1.0F});
    EXPECT_EQ(result.zero_points, std::vector<int32_t>{-28});
    EXPECT_EQ(result.codes, (std::vector<int8_t>{-128, 127, -28, -28, -26, -28}));
    // The range includes zero: positive rows begin at it, negative ones end there.
    result = QuantizeAsymmetric({510, 300, 2}, 1, 3, kernel.isa);
    EXPECT_EQ(result.scales, std::vector<float>{2.0F});
    EXPECT_EQ(result.zero_points, std::vector<int32_t>{-128});
    EXPECT_EQ(result.codes, (std::vector<int8_t>{127, 22, -127}));
    result = QuantizeAsymmetric({-510, -300, -2}, 1, 3, kernel.isa);
    EXPECT_EQ(result.zero_points, std::vector<int32_t>{127});
    EXPECT_EQ(result.codes, (std::vector<int8_t>{-128, -23, 126}));
    // lo / s = -127.5: the zero point is a tie, and so are both ends of the range.
    result = QuantizeAsymmetric({-255, 255}, 1, 2, kernel.isa);
    EXPECT_EQ(result.zero_points, std::vector<int32_t>{0});
    EXPECT_EQ(result.codes, (std::vector<int8_t>{-128, 127}));
  });
}

TEST(QuantizeRows, AsymmetricIsExactOnEveryKernelAndThreadCount) {
  constexpr uint64_t kSeed = 32;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  for (const int64_t k : {1, 7, 16, 33, 100, 576, 1001}) {
    for (const float shift : {-3.0F, -0.5F, 0.0F, 20.0F}) {
      const int64_t m = 40;
      std::vector<float> x = RandomFloats(rng, m * k);
      for (float& value : x) value += shift;
      const Asymmetric expected = QuantizeAsymmetric(x, m, k, Isa::kRef);
      ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
        for (const int threads : {1, 2}) {
          const Asymmetric actual = QuantizeAsymmetric(x, m, k, kernel.isa, threads);
          EXPECT_EQ(actual.codes, expected.codes) << k;
          EXPECT_EQ(actual.zero_points, expected.zero_points) << k;
          ExpectSameBits(actual.scales, expected.scales);
        }
      });
    }
  }
}

TEST(QuantizeRows, AsymmetricRowsThatHaveNoScale) {
  ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
    for (const int64_t k : {3, 40}) {
      std::vector<float> x(static_cast<size_t>(k), 1.0F);
      const std::vector<int8_t> zeros(x.size(), int8_t{0});
      for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
        x.back() = bad;
        const Asymmetric result = QuantizeAsymmetric(x, 1, k, kernel.isa);
        EXPECT_EQ(result.codes, zeros);
        EXPECT_EQ(result.zero_points[0], 0);
        EXPECT_TRUE(std::isnan(result.scales[0]));
      }
      x.front() = std::numeric_limits<float>::max();
      x.back() = std::numeric_limits<float>::lowest();
      EXPECT_TRUE(std::isnan(QuantizeAsymmetric(x, 1, k, kernel.isa).scales[0]));
      for (const float small : {0.0F, -0.0F, 1e-45F, -1e-45F}) {
        const Asymmetric result =
            QuantizeAsymmetric(std::vector<float>(x.size(), small), 1, k, kernel.isa);
        EXPECT_EQ(result.codes, zeros);
        EXPECT_EQ(result.zero_points[0], 0);
        EXPECT_EQ(result.scales[0], 0x1p-23F);
      }
    }
  });
}

TEST(QuantizeRows, StaticByHand) {
  ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
    ThreadPool pool(2);
    // Row 0: ties, and saturation on both sides. Row 1: not a number. Row 2: far out of range.
    const std::vector<float> x = {1, 3, -1,    1000,   -1000, 0,   0, std::nanf(""),
                                  0, 0, 1e38F, -1e38F, 20,    -20, 0};
    std::vector<int8_t> codes(x.size(), int8_t{99});
    std::vector<float> scales(3, kUnset);
    QuantizeRowsInt8Static(x.data(), 5, 3, 5, {.scale = 2}, codes.data(), scales.data(), kernel.isa,
                           pool);
    EXPECT_EQ(codes,
              (std::vector<int8_t>{0, 2, 0, 127, -128, 0, 0, 0, 0, 0, 127, -128, 10, -10, 0}));
    EXPECT_EQ(scales[0], 2.0F);
    EXPECT_TRUE(std::isnan(scales[1]));
    EXPECT_EQ(scales[2], 2.0F);
    // The zero point is added before rounding: 0.5 + 5 goes to 6, 1.5 + 5 too, -0.5 + 5 to 4.
    QuantizeRowsInt8Static(x.data(), 5, 3, 5, {.scale = 2, .zero_point = 5}, codes.data(),
                           scales.data(), kernel.isa, pool);
    EXPECT_EQ(codes,
              (std::vector<int8_t>{6, 6, 4, 127, -128, 0, 0, 0, 0, 0, 127, -128, 15, -5, 5}));
  });
}

TEST(QuantizeRows, StaticIsExactOnEveryKernel) {
  Rng rng(33);
  for (const int64_t k : {1, 17, 31, 576}) {
    const std::vector<float> x = RandomFloats(rng, 4 * k, 3.0);
    const auto run = [&](Isa isa, int32_t zero_point) {
      ThreadPool pool(1);
      Quantized result{std::vector<int8_t>(x.size()), std::vector<float>(4)};
      QuantizeRowsInt8Static(x.data(), k, 4, k, {.scale = 0.037F, .zero_point = zero_point},
                             result.codes.data(), result.scales.data(), isa, pool);
      return result.codes;
    };
    for (const int32_t zero_point : {-128, -3, 0, 127}) {
      ForEachKernel(QuantizeRowsKernels(), [&](const QuantizeRowsKernel& kernel) {
        EXPECT_EQ(run(kernel.isa, zero_point), run(Isa::kRef, zero_point));
      });
    }
  }
}

}  // namespace
}  // namespace octavo
