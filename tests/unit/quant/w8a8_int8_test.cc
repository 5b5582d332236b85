// The W8A8 INT8 scheme: which forms it takes, what they have on disk, and that shards of one input
// keep their own scales.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "quant/scheme.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TestContext;

constexpr int64_t kN = 5;
constexpr int64_t kK = 12;

QuantizationScheme Declared(const std::string& weights, const std::string& input) {
  const std::string json = R"({"targets": ["Linear"], "format": "int-quantized", "weights": )" +
                           weights + R"(, "input_activations": )" + input + "}";
  return ParseQuantizationScheme(ParseJson(json, "test").value(), "test").value();
}

constexpr char kChannel[] = R"({"strategy": "channel"})";
constexpr char kTensor[] = R"({"strategy": "tensor"})";
constexpr char kToken[] = R"({"strategy": "token", "dynamic": true})";
constexpr char kTokenAsymmetric[] = R"({"strategy": "token", "dynamic": true, "symmetric": false})";
constexpr char kStatic[] = R"({"strategy": "tensor"})";
constexpr char kStaticAsymmetric[] = R"({"strategy": "tensor", "symmetric": false})";

LinearLayer Layer(const std::string& weights, const std::string& input) {
  return {.name = "block.proj",
          .n = kN,
          .k = kK,
          .has_bias = false,
          .model_dtype = DType::kBF16,
          .quantization = Declared(weights, input)};
}

Tensor Bf16(std::vector<float> values, const Shape& shape) {
  return FromFloat(values, DType::kBF16, shape).value();
}

Tensor Codes(const Shape& shape, int step) {
  Tensor codes(DType::kI8, shape);
  int value = -128;
  for (int8_t& code : codes.mutable_data<int8_t>()) {
    code = static_cast<int8_t>(value);
    value = value + step > 127 ? value + step - 256 : value + step;
  }
  return codes;
}

// What a layer of that form has on disk, with an input scale of 2^-5 * `factor`.
LayerTensors OnDisk(const LinearLayer& layer, float factor = 1) {
  LayerTensors tensors;
  tensors["weight"] = Codes({kN, kK}, 37);
  if (layer.quantization.weights->strategy == Strategy::kTensor) {
    tensors["weight_scale"] = Bf16({0.25F}, {1});
  } else {
    tensors["weight_scale"] = Bf16({0.25F, 0.5F, 1, -2, 0.125F}, {kN, 1});
  }
  const QuantizationArgs& input = *layer.quantization.input_activations;
  if (input.dynamic == Dynamic::kFalse) {
    tensors["input_scale"] = Bf16({factor / 32}, {1});
    if (!input.symmetric) {
      tensors["input_zero_point"] = Tensor::Zeros(DType::kI8, {1});
      tensors["input_zero_point"].mutable_data<int8_t>()[0] = -30;
    }
  }
  return tensors;
}

LayerViews Views(const LayerTensors& tensors) {
  LayerViews views;
  for (const auto& [suffix, tensor] : tensors) views[suffix] = tensor.view();
  return views;
}

std::vector<float> Input() {
  std::vector<float> x(static_cast<size_t>(2 * kK));
  for (size_t i = 0; i < x.size(); ++i) x[i] = 2 * std::sin(static_cast<float>(3 * i));
  return x;
}

std::vector<float> Compute(const PreparedLinear& linear, const std::vector<float>& x, int64_t n,
                           QuantizedRows* rows) {
  TestContext context(1);
  const int64_t m = std::ssize(x) / kK;
  std::vector<float> y(static_cast<size_t>(m * n));
  linear.QuantizeRows({x.data(), m, kK, kK}, rows, context.context);
  linear.Multiply(*rows, y.data(), n, context.context);
  return y;
}

Result<std::unique_ptr<PreparedLinear>> Prepare(const LinearLayer& layer,
                                                const LayerTensors& tensors) {
  TestContext context(1);
  OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
  const LayerViews views = Views(tensors);
  OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, layer, views));
  return scheme->prepare({&layer, 1}, {&views, 1}, {}, context.context);
}

// y = s (q - z) w^T with the scheme's own codes and its float weight.
TEST(W8A8Int8, EveryFormComputesWhatItsCodesAndScalesSay) {
  for (const char* weights : {kChannel, kTensor}) {
    for (const char* input : {kToken, kTokenAsymmetric, kStatic, kStaticAsymmetric}) {
      SCOPED_TRACE(std::string(weights) + " " + input);
      const LinearLayer layer = Layer(weights, input);
      const LayerTensors tensors = OnDisk(layer);
      const auto linear = Prepare(layer, tensors);
      ASSERT_OK(linear);
      QuantizedRows rows;
      const std::vector<float> x = Input();
      const std::vector<float> y = Compute(**linear, x, kN, &rows);
      EXPECT_EQ(rows.zero_points.empty(), layer.quantization.input_activations->symmetric);

      const Tensor w = SelectScheme(layer).value()->dequantize(layer, Views(tensors)).value();
      for (size_t row = 0; row < 2; ++row) {
        const int zero_point = rows.zero_points.empty() ? 0 : rows.zero_points[row];
        for (size_t column = 0; column < kN; ++column) {
          double expected = 0;
          for (size_t i = 0; i < kK; ++i) {
            const int code = rows.codes[row * kK + i] - zero_point;
            EXPECT_NEAR(rows.scales[row] * static_cast<float>(code), x[row * kK + i],
                        rows.scales[row] * 0.51F);
            expected += static_cast<double>(rows.scales[row]) * code *
                        static_cast<double>(w.data<float>()[column * kK + i]);
          }
          EXPECT_NEAR(static_cast<double>(y[row * kN + column]), expected, 1e-3);
        }
      }
    }
  }
}

TEST(W8A8Int8, OtherFormsAreNamed) {
  const struct {
    const char* weights;
    const char* input;
    const char* difference;
  } cases[] = {
      {kChannel, R"({"strategy": "tensor", "dynamic": true})",
       "input activations: dynamic tensor, not dynamic token or static tensor"},
      {R"({"strategy": "group", "group_size": 4})", kToken,
       "weights: static group, not static channel or static tensor"},
      {R"({"strategy": "channel", "symmetric": false})", kStatic, "weights: asymmetric"},
      {R"({"strategy": "channel", "num_bits": 4})", kStatic, "weights: type is int4, not int8"},
  };
  const auto schemes = AllSchemes();
  const auto w8a8 = std::find_if(schemes.begin(), schemes.end(),
                                 [](const Scheme* scheme) { return scheme->name == "W8A8 INT8"; });
  ASSERT_NE(w8a8, schemes.end());
  for (const auto& [weights, input, difference] : cases) {
    std::string differences;
    for (const std::string& found : (*w8a8)->differences(Layer(weights, input).quantization))
      differences += found + "; ";
    EXPECT_NE(differences.find(difference), std::string::npos) << differences;
  }
}

TEST(W8A8Int8, ShardsStackOnlyWhereTheirInputScalesAreEqual) {
  const LinearLayer layer = Layer(kTensor, kStaticAsymmetric);
  const Scheme* scheme = SelectScheme(layer).value();
  const LayerTensors a = OnDisk(layer);
  const LayerTensors other_scale = OnDisk(layer, 1.5F);
  LayerTensors other_zero = OnDisk(layer);
  other_zero["input_zero_point"].mutable_data<int8_t>()[0] = 3;
  EXPECT_TRUE(scheme->stacks(Views(a), Views(OnDisk(layer))));
  EXPECT_FALSE(scheme->stacks(Views(a), Views(other_scale)));
  EXPECT_FALSE(scheme->stacks(Views(a), Views(other_zero)));
}

// Weight scales of shards differ and stay: the stack's rows have those of their shard.
TEST(W8A8Int8, StackedTensorScalesAreNotMerged) {
  TestContext context(1);
  const LinearLayer layer = Layer(kTensor, kToken);
  const Scheme* scheme = SelectScheme(layer).value();
  const LayerTensors a = OnDisk(layer);
  LayerTensors b = OnDisk(layer);
  b["weight_scale"] = Bf16({3}, {});
  b["weight"] = Codes({kN, kK}, 11);
  const std::vector<LinearLayer> layers = {layer, layer};
  const std::vector<LayerViews> views = {Views(a), Views(b)};
  ASSERT_OK(CheckDeclared(*scheme, layer, views[1]));
  const auto stacked = scheme->prepare(layers, views, {}, context.context);
  ASSERT_OK(stacked);
  QuantizedRows rows;
  const std::vector<float> x = Input();
  const std::vector<float> both = Compute(**stacked, x, 2 * kN, &rows);
  const std::vector<float> first = Compute(**Prepare(layer, a), x, kN, &rows);
  const std::vector<float> second = Compute(**Prepare(layer, b), x, kN, &rows);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t i = 0; i < kN; ++i) {
      EXPECT_EQ(both[row * 2 * kN + i], first[row * kN + i]);
      EXPECT_EQ(both[row * 2 * kN + kN + i], second[row * kN + i]);
    }
  }
}

TEST(W8A8Int8, WhatIsPackedIsWhatIsDeclared) {
  for (const char* weights : {kChannel, kTensor}) {
    for (const char* input : {kToken, kTokenAsymmetric, kStatic, kStaticAsymmetric}) {
      SCOPED_TRACE(std::string(weights) + " " + input);
      const LinearLayer layer = Layer(weights, input);
      const Scheme* scheme = SelectScheme(layer).value();
      std::vector<float> w(static_cast<size_t>(kN * kK));
      for (size_t i = 0; i < w.size(); ++i) w[i] = std::cos(static_cast<float>(i));
      auto tensors = scheme->pack(
          layer, QuantizeToNearest(*layer.quantization.weights, w, kN, kK, DType::kBF16).value());
      ASSERT_OK(tensors);
      if (layer.quantization.input_activations->dynamic == Dynamic::kFalse) {
        const float minimum = -1;
        const float maximum = 3;
        const auto scales = ComputeScales(*layer.quantization.input_activations, {&minimum, 1},
                                          {&maximum, 1}, {1}, DType::kBF16, Arithmetic::kFloat32);
        auto packed = scheme->pack_input(layer, *scales);
        ASSERT_OK(packed);
        tensors->merge(*packed);
      }
      ASSERT_OK(CheckDeclared(*scheme, layer, Views(*tensors)));
      for (const DeclaredTensor& declared : scheme->declare(layer)) {
        if (declared.optional) continue;
        const auto found = tensors->find(declared.suffix);
        ASSERT_NE(found, tensors->end()) << declared.suffix;
        EXPECT_EQ(found->second.dtype(), declared.dtypes.front()) << declared.suffix;
        EXPECT_EQ(found->second.shape(), declared.shapes.front()) << declared.suffix;
      }
      ASSERT_OK(Prepare(layer, *tensors));
    }
  }
}

TEST(W8A8Int8, DamagedInputScalesAreNamed) {
  const auto set_scale = [](float value) {
    return [value](LayerTensors* tensors) { (*tensors)["input_scale"] = Bf16({value}, {1}); };
  };
  const struct {
    const char* input;
    std::function<void(LayerTensors*)> damage;
    const char* message;
  } cases[] = {
      {kStatic, [](LayerTensors* t) { t->erase("input_scale"); }, "input_scale is missing"},
      {kStatic, set_scale(0), "input_scale is 0; it was never calibrated"},
      {kStatic, set_scale(-1), "input_scale is -1"},
      {kStatic, set_scale(std::nanf("")), "input_scale is nan"},
      {kStatic, set_scale(INFINITY), "input_scale is inf"},
      {kStatic,
       [](LayerTensors* t) {
         (*t)["input_scale"] = Bf16({1, 1}, {2});
       },
       "input_scale is BF16 [2], expected"},
      {kStatic, [](LayerTensors* t) { (*t)["input_scale"] = Codes({1}, 1); },
       "input_scale is I8 [1], expected"},
      {kStatic, [](LayerTensors* t) { (*t)["input_zero_point"] = Codes({1}, 1); },
       "input_zero_point is not zero, but declared symmetric"},
      {kStaticAsymmetric, [](LayerTensors* t) { t->erase("input_zero_point"); },
       "input_zero_point is missing"},
      {kStaticAsymmetric,
       [](LayerTensors* t) { (*t)["input_zero_point"] = Tensor::Zeros(DType::kI32, {1}); },
       "input_zero_point is I32 [1], expected I8"},
      {kToken, set_scale(1), "does not use it"},
  };
  for (const auto& [input, damage, message] : cases) {
    SCOPED_TRACE(message);
    const LinearLayer layer = Layer(kChannel, input);
    LayerTensors tensors = OnDisk(layer);
    damage(&tensors);
    const auto linear = Prepare(layer, tensors);
    ASSERT_FALSE(linear.ok());
    EXPECT_NE(linear.status().message().find(message), std::string::npos)
        << linear.status().message();
    EXPECT_NE(linear.status().message().find("block.proj"), std::string::npos);
  }
}

}  // namespace
}  // namespace octavo
