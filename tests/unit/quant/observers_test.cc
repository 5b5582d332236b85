#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/safetensors.h"
#include "quant/observers/activation_observer.h"
#include "quant/observers/observer.h"
#include "quant/quantize_weight.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TestData;

QuantizationArgs Args(std::string_view json) {
  return ParseQuantizationArgs(ParseJson(json, "test").value(), "args").value();
}

// The sum of |rounded - w| ^ 2.4 for given scales.
double Error(const QuantizationArgs& args, std::span<const float> w, int64_t n, int64_t k,
             const ScaleAndZeroPoint& scales) {
  const ScaleGrid grid = MakeScaleGrid(args, n, k).value();
  QuantizedWeight weight;
  weight.codes = QuantizeWithScales(args, grid, w, scales, DType::kBF16);
  weight.scale = scales.scale.Clone();
  const Tensor rounded = Dequantize(args, weight);
  double error = 0;
  for (size_t i = 0; i < w.size(); ++i)
    error += std::pow(std::abs(static_cast<double>(rounded.data<float>()[i] - w[i])), 2.4);
  return error;
}

// llm-compressor's search, on the weights of a checkpoint that it made with it. It sums in
// bfloat16, so that near ties fall otherwise: half of the scales are equal, and ours err less.
TEST(MseObserver, FindsScalesAsGoodAsTheLibrarys) {
  const auto file = SafetensorsFile::Open(TestData("schemes/mse.safetensors")).value();
  const QuantizationArgs args = Args(R"({"num_bits": 4, "group_size": 128, "observer": "mse"})");
  int layers = 0;
  for (const auto& [name, source] : file.tensors()) {
    if (!name.ends_with(".source")) continue;
    SCOPED_TRACE(name);
    const Tensor w = ToFloatTensor(source).value();
    const int64_t n = source.shape[0];
    const int64_t k = source.shape[1];
    const ScaleGrid grid = MakeScaleGrid(args, n, k).value();
    const auto ours = ObserveScales(args, grid, w.data<float>(), DType::kBF16).value();
    ScaleAndZeroPoint theirs;
    theirs.scale =
        ToFloatTensor(file.Find(name.substr(0, name.size() - 6) + "weight_scale").value()).value();
    int64_t equal = 0;
    for (int64_t unit = 0; unit < theirs.scale.elements(); ++unit) {
      equal += static_cast<int64_t>(ours.scale.data<float>()[static_cast<size_t>(unit)] ==
                                    theirs.scale.data<float>()[static_cast<size_t>(unit)]);
    }
    EXPECT_GE(equal * 10, theirs.scale.elements() * 4) << equal;
    QuantizationArgs plain = args;
    plain.observer.reset();
    const auto minmax = ObserveScales(plain, grid, w.data<float>(), DType::kBF16).value();
    const double error = Error(args, w.data<float>(), n, k, ours);
    EXPECT_LE(error, Error(args, w.data<float>(), n, k, theirs));
    EXPECT_LT(error, 0.97 * Error(args, w.data<float>(), n, k, minmax));
    ++layers;
  }
  EXPECT_EQ(layers, 2);
}

TEST(MseObserver, ObeysItsArguments) {
  // One large value: the search gives it up where it may.
  std::vector<float> w(1024);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0.05F * static_cast<float>(i % 13) - 0.3F;
  w[7] = 1.0F;
  const auto scale = [&](const std::string& kwargs) {
    const QuantizationArgs args =
        Args(R"({"num_bits": 4, "strategy": "tensor", "observer": "MSE", "observer_kwargs": )" +
             kwargs + "}");
    const ScaleGrid grid = MakeScaleGrid(args, 1, 1024).value();
    return ObserveScales(args, grid, w, DType::kF32).value().scale.data<float>()[0];
  };
  EXPECT_EQ(scale(R"({"maxshrink": 0.01})"), 1.0F / 7.5F);
  EXPECT_LT(scale(R"({"maxshrink": 0.8, "patience": 80})"), 0.7F / 7.5F);
  EXPECT_GT(scale(R"({"maxshrink": 0.01, "expand": 1.5})"), 1.0F / 7.5F);
}

TEST(MseObserver, NamesBadArguments) {
  const std::vector<float> w(8, 1.0F);
  for (const char* kwargs : {R"({"grid": 0})", R"({"grid": 1000000000})", R"({"maxshrink": 2})",
                             R"({"norm": -1})", R"({"patience": 0})", R"({"expand": 0})",
                             R"({"gird": 10})", R"({"grid": "ten"})", R"({"maxshrink": 0.001})"}) {
    const QuantizationArgs args =
        Args(std::string(R"({"strategy": "tensor", "observer": "mse", "observer_kwargs": )") +
             kwargs + "}");
    const auto scales = ObserveScales(args, MakeScaleGrid(args, 1, 8).value(), w, DType::kF32);
    ASSERT_FALSE(scales.ok()) << kwargs;
    EXPECT_NE(scales.status().message().find("observer_kwargs"), std::string::npos)
        << scales.status().message();
  }
}

QuantizationArgs InputArgs(const std::string& observer, bool symmetric = true,
                           const std::string& kwargs = "{}") {
  return Args(R"({"strategy": "tensor", "symmetric": )" +
              std::string(symmetric ? "true" : "false") + R"(, "observer": )" +
              (observer.empty() ? "null" : "\"" + observer + "\"") + R"(, "observer_kwargs": )" +
              kwargs + "}");
}

ActivationObserver Observed(const QuantizationArgs& args) {
  ActivationObserver observer = ActivationObserver::Make(args, DType::kF32).value();
  // Two batches of two rows of two values, three floats apart.
  const std::vector<float> first = {1, -2, 99, 3, 0, 99};
  const std::vector<float> second = {-4, 0, 99, 1, 2, 99};
  EXPECT_TRUE(observer.Observe({first.data(), 2, 2, 3}).ok());
  EXPECT_TRUE(observer.Observe({second.data(), 2, 2, 3}).ok());
  return observer;
}

TEST(ActivationObserver, MergesBatchesAsItsNameSays) {
  const auto expect = [](const ActivationObserver& observer, float minimum, float maximum) {
    EXPECT_FLOAT_EQ(observer.minimum(), minimum);
    EXPECT_FLOAT_EQ(observer.maximum(), maximum);
  };
  expect(Observed(InputArgs("static_minmax")), -4, 3);
  expect(Observed(InputArgs("")), -4, 3);
  expect(Observed(InputArgs("Static-MinMax")), -4, 3);
  expect(Observed(InputArgs("memoryless_minmax")), -4, 2);
  expect(Observed(InputArgs("minmax")), -2.02F, 2.99F);
  expect(Observed(InputArgs("minmax", true, R"({"averaging_constant": 0.5})")), -3, 2.5F);
}

TEST(ActivationObserver, GivesScalesThatHoldTheRange) {
  const auto symmetric = Observed(InputArgs("static_minmax")).Scales().value();
  EXPECT_EQ(symmetric.scale.data<float>()[0], 4.0F / 127.5F);
  EXPECT_TRUE(symmetric.zero_point.empty());
  const auto asymmetric = Observed(InputArgs("static_minmax", false)).Scales().value();
  EXPECT_EQ(asymmetric.scale.shape(), Shape{1});
  EXPECT_EQ(asymmetric.scale.data<float>()[0], 7.0F / 255.0F);
  EXPECT_EQ(asymmetric.zero_point.data<int8_t>()[0], 18);  // -128 + 4 / (7 / 255) = 17.7
}

TEST(ActivationObserver, TheRangeAlwaysHoldsZero) {
  ActivationObserver observer =
      ActivationObserver::Make(InputArgs("static_minmax", false), DType::kF32).value();
  const std::vector<float> x = {5, 6};
  ASSERT_TRUE(observer.Observe({x.data(), 1, 2, 2}).ok());
  EXPECT_EQ(observer.minimum(), 0);
  EXPECT_EQ(observer.Scales()->zero_point.data<int8_t>()[0], -128);
}

TEST(ActivationObserver, MseShrinksTheRangeOfAnOutlier) {
  std::vector<float> x(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  x[100] = 1.1F;
  const auto maximum = [&](const std::string& name) {
    QuantizationArgs args = InputArgs(name);
    args.num_bits = 4;
    ActivationObserver observer = ActivationObserver::Make(args, DType::kF32).value();
    EXPECT_TRUE(observer.Observe({x.data(), 8, 512, 512}).ok());
    return observer.maximum();
  };
  EXPECT_EQ(maximum("minmax"), 1.1F);
  EXPECT_LT(maximum("mse"), 1.1F);
}

TEST(ActivationObserver, NamesWhatItCannotDo) {
  ActivationObserver observer =
      ActivationObserver::Make(InputArgs("static_minmax"), DType::kBF16).value();
  EXPECT_FALSE(observer.has_seen_data());
  EXPECT_NE(observer.Scales().status().message().find("no calibration data"), std::string::npos);
  EXPECT_TRUE(observer.Observe({nullptr, 0, 4, 4}).ok());
  EXPECT_FALSE(observer.has_seen_data());
  const std::vector<float> bad = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(observer.Observe({bad.data(), 1, 2, 2}).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(observer.has_seen_data());

  const auto error = [](const QuantizationArgs& args) {
    return ActivationObserver::Make(args, DType::kBF16).status();
  };
  EXPECT_EQ(error(InputArgs("imatrix_mse")).code(), StatusCode::kUnsupported);
  EXPECT_EQ(error(InputArgs("static_minmaks")).code(), StatusCode::kNotFound);
  EXPECT_EQ(error(InputArgs("minmax", true, R"({"averaging_constant": 0})")).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(error(Args(R"({"strategy": "token", "dynamic": true})")).code(),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace octavo
