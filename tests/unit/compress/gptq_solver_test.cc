#include "compress/modifiers/gptq_solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/rng.h"
#include "compress/layer_error.h"
#include "compress/modifiers/cholesky.h"
#include "io/safetensors.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

QuantizationArgs ChannelArgs(int num_bits = 8) {
  QuantizationArgs args;
  args.num_bits = num_bits;
  args.strategy = Strategy::kChannel;
  return args;
}

std::vector<float> Random(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(rng.Uniform()) - 0.5F;
  return values;
}

// 2 X^T X of `tokens` random rows whose columns are correlated and of different sizes.
std::vector<float> RandomHessian(int64_t k, int64_t tokens, uint64_t seed) {
  std::vector<float> x = Random(static_cast<size_t>(tokens * k), seed);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t j = k - 1; j > 0; --j) {
      float& value = x[static_cast<size_t>(t * k + j)];
      value = (value + 0.7F * x[static_cast<size_t>(t * k + j - 1)]) *
              (1.0F + 0.3F * static_cast<float>(j % 5));
    }
  }
  std::vector<float> h(static_cast<size_t>(k * k));
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < tokens; ++t) {
        sum += static_cast<double>(x[static_cast<size_t>(t * k + i)]) *
               static_cast<double>(x[static_cast<size_t>(t * k + j)]);
      }
      h[static_cast<size_t>(i * k + j)] = static_cast<float>(2 * sum);
    }
  }
  return h;
}

std::vector<int> Codes(const QuantizedWeight& weight) {
  const auto data = weight.codes.data<int8_t>();
  return {data.begin(), data.end()};
}

class Gptq : public testing::Test {
 protected:
  double Error(std::span<const float> h, std::span<const float> w, const QuantizationArgs& args,
               const QuantizedWeight& quantized) {
    const Tensor values = Dequantize(args, quantized);
    std::vector<float> difference(w.begin(), w.end());
    for (size_t i = 0; i < difference.size(); ++i) difference[i] -= values.data<float>()[i];
    return OutputEnergy(difference, values.dim(0), values.dim(1), h, context_);
  }

  ThreadPool pool_{2};
  Context context_{.pool = pool_, .isa = SelectIsa().value()};
};

// q_proj of layer 0 of the goldens' llama, with llm-compressor's own error before it saved.
TEST_F(Gptq, IsNoWorseThanTheReference) {
  const auto file =
      SafetensorsFile::Open(std::filesystem::path(OCTAVO_TEST_DATA) / "schemes/gptq.safetensors")
          .value();
  const auto h = file.Find("hessian")->data<float>();
  const Tensor w = ToFloatTensor(*file.Find("weight")).value();
  const double reference = file.Find("reference_error")->data<double>()[0];
  const int64_t n = w.dim(0);
  const int64_t k = w.dim(1);
  const HessianFactor factor = FactorHessian(h, k, {}, context_).value();
  EXPECT_EQ(factor.note, "");
  const GptqResult result =
      SolveGptq(factor, w.data<float>(), n, ChannelArgs(), DType::kBF16, {}, {}, context_).value();
  const double error = Error(h, w.data<float>(), ChannelArgs(), result.weight);
  EXPECT_NEAR(reference, 3.774, 0.001);
  EXPECT_LT(error, 1.02 * reference);
  const QuantizedWeight nearest =
      QuantizeToNearest(ChannelArgs(), w.data<float>(), n, k, DType::kBF16).value();
  EXPECT_GT(Error(h, w.data<float>(), ChannelArgs(), nearest), 10 * error);
  // The scales are those of rounding to nearest.
  for (int64_t row = 0; row < n; ++row) {
    EXPECT_EQ(result.weight.scale.data<float>()[static_cast<size_t>(row)],
              nearest.scale.data<float>()[static_cast<size_t>(row)]);
  }
}

TEST_F(Gptq, LosesLessThanRoundingForEveryShapeAndScheme) {
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {64, 64}, {70, 130}, {33, 200}}) {
    const std::vector<float> h = RandomHessian(k, 3 * k, 1);
    const std::vector<float> w = Random(static_cast<size_t>(n * k), 2);
    for (const bool symmetric : {true, false}) {
      for (const bool order : {true, false}) {
        QuantizationArgs args = ChannelArgs(4);
        args.symmetric = symmetric;
        if (k % 10 == 0) {
          args.strategy = Strategy::kGroup;
          args.group_size = 10;
        }
        const GptqOptions options{.block_size = 48, .order_by_diagonal = order};
        const HessianFactor factor = FactorHessian(h, k, options, context_).value();
        const GptqResult result =
            SolveGptq(factor, w, n, args, DType::kF32, {}, options, context_).value();
        const QuantizedWeight nearest = QuantizeToNearest(args, w, n, k, DType::kF32).value();
        EXPECT_LE(Error(h, w, args, result.weight), Error(h, w, args, nearest) * 1.0001)
            << n << " x " << k;
        EXPECT_FALSE(result.fell_back);
        // The reported loss is the output's error, but for the damping.
        const double error = Error(h, w, args, result.weight);
        EXPECT_NEAR(*result.loss, error, 0.5 * error + 1e-6);
      }
    }
  }
}

TEST_F(Gptq, DiagonalHessianIsRoundingToNearest) {
  constexpr int64_t kSize = 96;
  std::vector<float> h(kSize * kSize, 0.0F);
  for (size_t j = 0; j < kSize; ++j) h[j * kSize + j] = 1.0F + static_cast<float>(j % 7);
  const std::vector<float> w = Random(40 * kSize, 3);
  const HessianFactor factor = FactorHessian(h, kSize, {}, context_).value();
  const GptqResult result =
      SolveGptq(factor, w, 40, ChannelArgs(), DType::kBF16, {}, {}, context_).value();
  EXPECT_EQ(Codes(result.weight),
            Codes(QuantizeToNearest(ChannelArgs(), w, 40, kSize, DType::kBF16).value()));
}

TEST_F(Gptq, ScaleOfTheHessianDoesNotMatter) {
  constexpr int64_t kSize = 100;
  std::vector<float> h = RandomHessian(kSize, 300, 4);
  const std::vector<float> w = Random(30 * kSize, 5);
  const auto solve = [&] {
    return Codes(SolveGptq(FactorHessian(h, kSize, {}, context_).value(), w, 30, ChannelArgs(4),
                           DType::kBF16, {}, {}, context_)
                     ->weight);
  };
  const std::vector<int> codes = solve();
  for (float& value : h) value *= 0.0009765625F;  // exact in float32
  EXPECT_EQ(solve(), codes);
}

TEST_F(Gptq, ThreadsDoNotMatter) {
  constexpr int64_t kSize = 320;
  const std::vector<float> h = RandomHessian(kSize, 400, 6);
  const std::vector<float> w = Random(200 * kSize, 7);
  const auto solve = [&](int threads) {
    ThreadPool pool(threads);
    const Context context{.pool = pool, .isa = context_.isa};
    GptqResult result = SolveGptq(FactorHessian(h, kSize, {}, context).value(), w, 200,
                                  ChannelArgs(), DType::kBF16, {}, {}, context)
                            .value();
    return std::pair(Codes(result.weight), *result.loss);
  };
  EXPECT_EQ(solve(1), solve(3));
}

TEST_F(Gptq, DeadColumnsAreRoundedToNearest) {
  constexpr int64_t kSize = 64;
  std::vector<float> h = RandomHessian(kSize, 200, 8);
  for (size_t j = 0; j < kSize; ++j) h[5 * kSize + j] = h[j * kSize + 5] = 0;
  const std::vector<float> w = Random(20 * kSize, 9);
  const HessianFactor factor = FactorHessian(h, kSize, {}, context_).value();
  EXPECT_EQ(factor.dead_columns, 1);
  const GptqResult result =
      SolveGptq(factor, w, 20, ChannelArgs(), DType::kBF16, {}, {}, context_).value();
  const QuantizedWeight nearest =
      QuantizeToNearest(ChannelArgs(), w, 20, kSize, DType::kBF16).value();
  for (size_t row = 0; row < 20; ++row) {
    EXPECT_EQ(result.weight.codes.data<int8_t>()[row * kSize + 5],
              nearest.codes.data<int8_t>()[row * kSize + 5]);
  }
  // Nothing was seen at all: still an answer.
  const std::vector<float> zero(kSize * kSize, 0.0F);
  const GptqResult unseen = SolveGptq(FactorHessian(zero, kSize, {}, context_).value(), w, 20,
                                      ChannelArgs(), DType::kBF16, {}, {}, context_)
                                .value();
  EXPECT_EQ(Codes(unseen.weight), Codes(nearest));
}

TEST_F(Gptq, FewTokensNeedNoMoreDamping) {
  constexpr int64_t kSize = 64;
  const std::vector<float> h = RandomHessian(kSize, 3, 10);  // rank 3
  const HessianFactor factor = FactorHessian(h, kSize, {}, context_).value();
  EXPECT_EQ(factor.dampening_frac, 0.01);
  EXPECT_EQ(factor.note, "");
}

TEST_F(Gptq, RaisesDampingThenGivesUpAndSaysSo) {
  constexpr int64_t kSize = 32;
  std::vector<float> h = RandomHessian(kSize, 100, 11);
  double mean = 0;
  for (size_t j = 0; j < kSize; ++j) mean += static_cast<double>(h[j * kSize + j]) / kSize;
  // One pair more strongly coupled than its diagonal allows: an eigenvalue of -0.05 means.
  for (size_t j = 0; j < kSize; ++j) h[j] = h[j * kSize] = h[kSize + j] = h[j * kSize + 1] = 0;
  h[0] = h[kSize + 1] = static_cast<float>(mean);
  h[1] = h[kSize] = static_cast<float>(1.05 * mean);
  const HessianFactor raised = FactorHessian(h, kSize, {}, context_).value();
  EXPECT_FALSE(raised.fell_back);
  EXPECT_DOUBLE_EQ(raised.dampening_frac, 0.1);
  EXPECT_NE(raised.note.find("damping 0.1"), std::string::npos) << raised.note;

  h[1] = h[kSize] = static_cast<float>(5 * mean);
  const HessianFactor given_up = FactorHessian(h, kSize, {}, context_).value();
  EXPECT_TRUE(given_up.fell_back);
  const std::vector<float> w = Random(8 * kSize, 12);
  const GptqResult result =
      SolveGptq(given_up, w, 8, ChannelArgs(), DType::kBF16, {}, {}, context_).value();
  EXPECT_TRUE(result.fell_back);
  EXPECT_FALSE(result.loss.has_value());
  EXPECT_NE(result.note.find("rounded to nearest"), std::string::npos);
  EXPECT_EQ(Codes(result.weight),
            Codes(QuantizeToNearest(ChannelArgs(), w, 8, kSize, DType::kBF16).value()));
}

TEST_F(Gptq, Float64SavesWhatFloat32Cannot) {
  // In float32 the second pivot, one unit in the last place of 7, comes out as minus that.
  constexpr int64_t kSize = 2;
  const std::vector<float> h = {7.0F, 7.0F, 7.0F, std::nextafter(7.0F, 8.0F)};
  const GptqOptions options{.dampening_frac = 0, .order_by_diagonal = true};
  const HessianFactor factor = FactorHessian(h, kSize, options, context_).value();
  EXPECT_FALSE(factor.fell_back) << factor.note;
  EXPECT_NE(factor.note.find("in float64"), std::string::npos) << factor.note;
  const std::vector<float> singular(4, 1.0F);
  EXPECT_TRUE(FactorHessian(singular, kSize, options, context_)->fell_back);
}

TEST_F(Gptq, RefusesWhatIsNotFinite) {
  std::vector<float> h = RandomHessian(8, 20, 13);
  std::vector<float> w = Random(3 * 8, 14);
  const HessianFactor factor = FactorHessian(h, 8, {}, context_).value();
  w[5] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(SolveGptq(factor, w, 3, ChannelArgs(), DType::kBF16, {}, {}, context_).ok());
  h[9] = std::numeric_limits<float>::quiet_NaN();
  const auto result = FactorHessian(h, 8, {}, context_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("Hessian holds NaN"), std::string::npos);
}

TEST(Cholesky, FactorsAndInverts) {
  ThreadPool pool(2);
  const Isa isa = SelectIsa().value();
  for (const int64_t k : {1, 2, 63, 64, 65, 200, 257}) {
    const auto size = static_cast<size_t>(k);
    std::vector<float> a = RandomHessian(k, 2 * k + 5, 15);
    for (size_t j = 0; j < size; ++j) a[j * size + j] += 1.0F;
    std::vector<float> lower = a;
    ASSERT_TRUE(CholeskyInPlace(lower, k, isa, pool)) << k;
    std::vector<float> inverse(a.size(), -1.0F);
    InvertLowerTriangle(lower, k, inverse, isa, pool);
    double worst_product = 0;
    double worst_inverse = 0;
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        double product = 0;
        double identity = 0;
        for (size_t p = 0; p <= i; ++p) {
          if (p <= j)
            product +=
                static_cast<double>(lower[i * size + p]) * static_cast<double>(lower[j * size + p]);
          identity +=
              static_cast<double>(lower[i * size + p]) * static_cast<double>(inverse[p * size + j]);
        }
        worst_product =
            std::max(worst_product, std::abs(product - static_cast<double>(a[i * size + j])) /
                                        static_cast<double>(a[i * size + i]));
        worst_inverse = std::max(worst_inverse, std::abs(identity - (i == j ? 1.0 : 0.0)));
        if (j > i) {
          EXPECT_EQ(inverse[i * size + j], 0.0F);
        }
      }
    }
    EXPECT_LT(worst_product, 1e-4) << k;
    EXPECT_LT(worst_inverse, 1e-4) << k;
  }
}

}  // namespace
}  // namespace octavo
