// Every scheme of the list, in every form that it names: stored and read again, and computed on
// every instruction set as its dequantized weights and rounded inputs say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/rng.h"
#include "quant/scheme.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TestContext;

struct Case {
  const Scheme* scheme;
  std::string_view example;
  bool is_odd;  // sizes that no vector divides, and a bias
  // Every third scale is below zero, as AutoRound writes half of them.
  bool has_negative_scales = false;
};

bool HasIntegerWeights(std::string_view example) {
  const auto declared = ExampleOf(example);
  return declared.ok() && declared->weights && declared->weights->type == QuantizationType::kInt;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Scheme* scheme : AllSchemes()) {
    for (const std::string_view example : scheme->examples) {
      cases.push_back({scheme, example, false});
      cases.push_back({scheme, example, true});
      if (HasIntegerWeights(example)) cases.push_back({scheme, example, true, true});
    }
  }
  return cases;
}

// Groups must divide the columns.
int64_t OddColumns(const QuantizationScheme& declared) {
  constexpr int64_t kOdd = 251;
  if (!declared.weights || declared.weights->group_size.value_or(0) <= 0) return kOdd;
  return 3 * *declared.weights->group_size;
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::to_string(info.index) + "_" + std::string(info.param.scheme->name);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name + (info.param.is_odd ? "_odd" : "") +
         (info.param.has_negative_scales ? "_negative" : "");
}

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.scheme->name << " " << item.example << (item.is_odd ? ", odd sizes" : "")
       << (item.has_negative_scales ? ", negative scales" : "");
}

std::vector<float> Random(int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(4 * rng.Uniform() - 2);
  return values;
}

// One scale, as calibration would give it.
ScaleAndZeroPoint OneScale(float value, int8_t zero_point) {
  ScaleAndZeroPoint scales{Tensor(DType::kF32, {1}), Tensor(DType::kI8, {1}), Tensor()};
  scales.scale.mutable_data<float>()[0] = value;
  scales.zero_point.mutable_data<int8_t>()[0] = zero_point;
  return scales;
}

LayerViews Views(const LayerTensors& tensors) {
  LayerViews views;
  for (const auto& [suffix, tensor] : tensors) views[suffix] = tensor.view();
  return views;
}

class EveryScheme : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto declared = ExampleOf(GetParam().example);
    ASSERT_OK(declared);
    const bool is_odd = GetParam().is_odd;
    layer_ = {.name = "layer",
              .n = is_odd ? 67 : 72,
              .k = is_odd ? OddColumns(*declared) : 256,
              .has_bias = is_odd,
              .quantization = *declared};
    const auto selected = SelectScheme(layer_);
    ASSERT_OK(selected);
    ASSERT_EQ(*selected, GetParam().scheme);
    weight_ = Random(layer_.n * layer_.k, 1);
    for (float& value : weight_) value = RoundedToBf16(value);
    Store();
    if (is_odd) {
      bias_ = Random(layer_.n, 3);
      for (float& value : bias_) value = RoundedToBf16(value);
      tensors_["bias"] = FromFloat(bias_, DType::kBF16, {layer_.n}).value();
    }
  }

  static float RoundedToBf16(float value) { return FloatFromBf16(Bf16FromFloat(value)); }

  void Store() {
    const Scheme& scheme = *GetParam().scheme;
    if (scheme.pack == nullptr) {
      tensors_["weight"] = FromFloat(weight_, DType::kBF16, {layer_.n, layer_.k}).value();
      return;
    }
    auto quantized = QuantizeToNearest(*layer_.quantization.weights, weight_, layer_.n, layer_.k,
                                       layer_.model_dtype);
    ASSERT_OK(quantized);
    quantized_ = *std::move(quantized);
    const std::span<float> scales = quantized_.scale.mutable_data<float>();
    for (size_t i = 0; GetParam().has_negative_scales && i < scales.size(); i += 3)
      scales[i] = -scales[i];
    auto packed = scheme.pack(layer_, quantized_.Clone());
    ASSERT_OK(packed);
    tensors_ = *std::move(packed);
    if (scheme.pack_input != nullptr) {
      auto input = scheme.pack_input(layer_, OneScale(0.03125F, 5));
      ASSERT_OK(input);
      tensors_.merge(*input);
    }
    if (scheme.pack_output != nullptr) {
      auto output = scheme.pack_output(layer_, OneScale(1, 0));
      ASSERT_OK(output);
      tensors_.merge(*output);
    }
  }

  // y [m, n] is x [m, k] times the weight, bias added, rounded where outputs are.
  void ExpectProduct(const std::vector<double>& x, const Tensor& weight,
                     const std::vector<float>& y) const {
    const auto n = static_cast<size_t>(layer_.n);
    const auto k = static_cast<size_t>(layer_.k);
    const std::span<const float> w = weight.data<float>();
    for (size_t i = 0; i < y.size(); ++i) {
      double expected = bias_.empty() ? 0 : static_cast<double>(bias_[i % n]);
      double magnitude = std::fabs(expected);
      for (size_t j = 0; j < k; ++j) {
        const double product = x[i / n * k + j] * static_cast<double>(w[i % n * k + j]);
        expected += product;
        magnitude += std::fabs(product);
      }
      // Rounded outputs are a step of 1 apart.
      const double step = GetParam().scheme->pack_output != nullptr ? 0.50001 : 0.0;
      ASSERT_NEAR(static_cast<double>(y[i]), expected, 1e-6 * magnitude + step)
          << "row " << i / n << ", column " << i % n;
    }
  }

  LinearLayer layer_;
  std::vector<float> weight_;
  std::vector<float> bias_;  // [n] or empty
  QuantizedWeight quantized_;
  LayerTensors tensors_;
};

void ExpectSameBytes(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.num_bytes(), b.num_bytes());
  if (a.num_bytes() == 0) return;
  EXPECT_EQ(std::memcmp(a.view().bytes, b.view().bytes, static_cast<size_t>(a.num_bytes())), 0);
}

TEST_P(EveryScheme, ReadsWhatItStores) {
  const Scheme& scheme = *GetParam().scheme;
  const LayerViews views = Views(tensors_);
  ASSERT_OK(CheckDeclared(scheme, layer_, views));
  const auto weight = scheme.dequantize(layer_, views);
  ASSERT_OK(weight);
  if (scheme.pack == nullptr) {
    EXPECT_TRUE(std::equal(weight_.begin(), weight_.end(), weight->data<float>().begin()));
    return;
  }
  const auto unpacked = scheme.unpack(layer_, views);
  ASSERT_OK(unpacked);
  ExpectSameBytes(unpacked->codes, quantized_.codes);
  ExpectSameBytes(unpacked->scale, quantized_.scale);
  ExpectSameBytes(*weight, Dequantize(*layer_.quantization.weights, quantized_));
}

// The input as its codes read back.
std::vector<double> ReadBack(const Rows& x, const QuantizedRows& rows) {
  std::vector<double> values;
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.k; ++j) {
      const auto at = static_cast<size_t>(i * x.k + j);
      if (rows.codes.empty()) {
        values.push_back(static_cast<double>(rows.source.data[i * rows.source.stride + j]));
        continue;
      }
      const size_t groups = rows.scales.size() / static_cast<size_t>(x.m);
      const size_t unit = at / (static_cast<size_t>(x.k) / groups);
      const int zero_point =
          rows.zero_points.empty() ? 0 : rows.zero_points[static_cast<size_t>(i)];
      values.push_back((rows.codes[at] - zero_point) * static_cast<double>(rows.scales[unit]));
    }
  }
  return values;
}

TEST_P(EveryScheme, ComputesItsDequantizedWeightsOnEveryInstructionSet) {
  const Scheme& scheme = *GetParam().scheme;
  const LayerViews views = Views(tensors_);
  const Tensor weight = scheme.dequantize(layer_, views).value();
  const TestContext context(2);
  std::vector<Isa> isas = {Isa::kRef};
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    if (isa <= context.context.isa) isas.push_back(isa);
  }
  for (const Isa isa : isas) {
    const Context at{.pool = context.context.pool, .isa = isa};
    const auto prepared = scheme.prepare({&layer_, 1}, {&views, 1}, {}, at);
    ASSERT_OK(prepared);
    for (const int64_t m : {int64_t{1}, int64_t{5}, int64_t{40}}) {
      SCOPED_TRACE(std::string(IsaName(isa)) + ", rows " + std::to_string(m));
      const std::vector<float> x = Random(m * layer_.k, 2);
      const Rows input{x.data(), m, layer_.k, layer_.k};
      QuantizedRows rows;
      (*prepared)->QuantizeRows(input, &rows, at);
      std::vector<float> y(static_cast<size_t>(m * layer_.n));
      (*prepared)->Multiply(rows, y.data(), layer_.n, at);
      ExpectProduct(ReadBack(input, rows), weight, y);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(List, EveryScheme, ::testing::ValuesIn(Cases()), CaseName);

// A scheme that is made must be tried.
TEST(SchemeList, WhatIsMadeHasExamples) {
  for (const Scheme* scheme : AllSchemes()) {
    EXPECT_TRUE(scheme->pack == nullptr || !scheme->examples.empty()) << scheme->name;
  }
}

}  // namespace
}  // namespace octavo
