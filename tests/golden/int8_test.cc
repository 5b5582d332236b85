// Every INT8 form that a recipe can ask for, made from the library's own recipes and compared with
// what it saved: names, shapes, config and recipe exactly, numbers by the rules of
// docs/numerics.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "golden/quantize_fixture.h"
#include "quant/config.h"
#include "quant/quantize_weight.h"
#include "runtime/load.h"
#include "support/model_logits.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::QuantizeGolden;
using testing::TestContext;
using testing::TestData;

struct Int8Case {
  std::string name;
  // What the library changed before it rounded: norms and weight scales differ by its bfloat16.
  bool smoothed = false;
  double codes_that_differ = 0.12;  // share of all
  int code_distance = 1;            // at most
  double scale_steps = 0;           // of bfloat16, that weight scales and norms differ by at most
};

// In the names of tests; gtest would show the bytes, addresses among them.
void PrintTo(const Int8Case& item, std::ostream* out) {
  *out << item.name;
}

class Int8Golden : public QuantizeGolden, public ::testing::WithParamInterface<Int8Case> {
 protected:
  void SetUp() override {
    QuantizeGolden::SetUp();
    options_ = Options("base-llama", "out");
    // The library's rounding to nearest changes nothing that the next block is calibrated on.
    options_.propagate = Propagate::kNone;
    ASSERT_OK(QuantizeLike(GetParam().name, options_, context_.context));
  }

  // By the library's rule for activations, [rows of ids, vocab] in one piece.
  std::vector<float> Logits(const std::filesystem::path& folder, const TensorView& ids) {
    auto loaded = LoadModel(folder, {.prepare = {.activation_rule = ActivationRule::kLibrary}},
                            context_.context);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return testing::LogitsOf((*loaded)->model(), ids, context_.context);
  }

  QuantizeOptions options_;
};

TEST_P(Int8Golden, ConfigAndRecipeAreTheLibrarys) {
  const std::filesystem::path expected = TestData("checkpoints/" + GetParam().name);
  const JsonStyle style{.indent = 2, .sort_keys = true};
  EXPECT_EQ(WriteJson(*Json(options_.out / "config.json").Find("quantization_config"), style),
            WriteJson(*Json(expected / "config.json").Find("quantization_config"), style));
  if (GetParam().smoothed) return;  // the library also saves the mappings that it inferred
  EXPECT_EQ(ReadFile(options_.out / "recipe.yaml").value(),
            ReadFile(expected / "recipe.yaml").value());
}

// Distance in steps of bfloat16 (8 bits of mantissa) at the expected value.
double Bf16Steps(float found, float expected) {
  return std::fabs(static_cast<double>(found) - static_cast<double>(expected)) /
         std::ldexp(1.0, std::ilogb(expected) - 7);
}

TEST_P(Int8Golden, TensorsAreTheLibrarys) {
  const auto ours = SafetensorsFile::Open(options_.out / "model.safetensors");
  const auto theirs =
      SafetensorsFile::Open(TestData("checkpoints/" + GetParam().name + "/model.safetensors"));
  ASSERT_OK(ours);
  ASSERT_OK(theirs);
  ASSERT_EQ(ours->tensors().size(), theirs->tensors().size());
  int64_t codes = 0;
  int64_t different = 0;
  std::map<std::string, double> largest;  // distance in bf16 steps, by the last part of the name
  for (const auto& [name, expected] : theirs->tensors()) {
    SCOPED_TRACE(name);
    const auto found = ours->Find(name);
    ASSERT_OK(found);
    ASSERT_EQ(found->dtype, expected.dtype);
    ASSERT_EQ(found->shape, expected.shape);
    if (expected.dtype == DType::kI8) {
      const auto a = found->data<int8_t>();
      const auto b = expected.data<int8_t>();
      for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_LE(std::abs(a[i] - b[i]), GetParam().code_distance);
        different += a[i] != b[i];
      }
      codes += expected.elements();
      continue;
    }
    const Tensor a = ToFloatTensor(*found).value();
    const Tensor b = ToFloatTensor(expected).value();
    const std::string kind = name.ends_with("norm.weight") ? "norm" : name.substr(name.rfind('.'));
    for (int64_t i = 0; i < expected.elements(); ++i) {
      const float x = a.data<float>()[static_cast<size_t>(i)];
      const float y = b.data<float>()[static_cast<size_t>(i)];
      if (x != y) {
        largest[kind] = std::max(largest[kind], Bf16Steps(x, y));
      }
    }
  }
  EXPECT_LE(static_cast<double>(different),
            GetParam().codes_that_differ * static_cast<double>(codes));
  for (const auto& [kind, steps] : largest) {
    SCOPED_TRACE(kind);
    // The library's calibration sees activations that were rounded to bfloat16 at every step.
    EXPECT_LE(steps, kind == ".input_scale" ? 2.0 : GetParam().scale_steps);
  }
}

// By the library's own rounding (quotients in bfloat16) every code is met.
TEST_P(Int8Golden, ReferenceArithmeticMeetsEveryCode) {
  if (GetParam().smoothed) return;  // its weights were changed before they were rounded
  const std::filesystem::path folder = TestData("checkpoints/" + GetParam().name);
  const auto source = SafetensorsFile::Open(TestData("checkpoints/base-llama/model.safetensors"));
  const auto theirs = SafetensorsFile::Open(folder / "model.safetensors");
  ASSERT_OK(source);
  ASSERT_OK(theirs);
  const auto config = FindQuantizationConfig(Json(folder / "config.json"));
  ASSERT_OK(config);
  const QuantizationArgs args = *(*config)->config_groups.front().second.weights;
  for (const auto& [name, expected] : theirs->tensors()) {
    if (expected.dtype != DType::kI8 || !name.ends_with(".weight")) continue;
    SCOPED_TRACE(name);
    const Tensor w = ToFloatTensor(*source->Find(name)).value();
    const auto quantized =
        QuantizeToNearest(args, w.data<float>(), expected.shape[0], expected.shape[1], DType::kBF16,
                          Arithmetic::kReference);
    ASSERT_OK(quantized);
    EXPECT_TRUE(std::ranges::equal(quantized->codes.data<int8_t>(), expected.data<int8_t>()));
    const Tensor scale = ToFloatTensor(*theirs->Find(name + "_scale")).value();
    EXPECT_TRUE(std::ranges::equal(quantized->scale.data<float>(), scale.data<float>()));
  }
}

double Rms(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double distance = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += distance * distance;
  }
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// In these models one code that flips changes all that comes after it: so what is compared is how
// far quantizing moves the logits, and that both move them in much the same way.
TEST_P(Int8Golden, LogitsAreAsNearToTheModelsAsTheLibrarys) {
  const auto golden =
      SafetensorsFile::Open(TestData("checkpoints/" + GetParam().name + "/golden.safetensors"));
  ASSERT_OK(golden);
  const TensorView ids = golden->Find("input_ids").value();
  const auto theirs = golden->Find("logits").value().data<float>();
  const std::vector<float> ours = Logits(options_.out, ids);
  const std::vector<float> original = Logits(TestData("checkpoints/base-llama"), ids);
  ASSERT_EQ(ours.size(), theirs.size());
  const double effect = Rms(theirs, original);
  EXPECT_LT(Rms(ours, original), 1.05 * effect);
  EXPECT_LT(Rms(ours, theirs), 1.3 * effect);
}

INSTANTIATE_TEST_SUITE_P(Cases, Int8Golden,
                         ::testing::Values(Int8Case{.name = "llama-w8a8-static"},
                                           Int8Case{.name = "llama-w8a8-static-asym"},
                                           Int8Case{.name = "llama-w8a8-tensor"},
                                           Int8Case{.name = "llama-w8a8-token-asym"},
                                           Int8Case{.name = "llama-smooth5-w8a8",
                                                    .smoothed = true,
                                                    .codes_that_differ = 0.16,
                                                    .code_distance = 3,
                                                    .scale_steps = 3}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class StaticObservers : public QuantizeGolden {
 protected:
  // The bytes of base-llama with static inputs by that observer, after smoothing.
  std::string Quantized(const std::string& observer, int64_t samples) {
    QuantizeOptions options = Options("base-llama", "out");
    options.dataset.num_samples = samples;
    options.force = true;
    const auto report = QuantizeBy(R"(
s_stage:
  m_modifiers:
    SmoothQuantModifier: {}
    GPTQModifier:
      ignore: [lm_head]
      config_groups:
        g:
          targets: [Linear]
          weights: {num_bits: 8, strategy: channel}
          input_activations: {num_bits: 8, strategy: tensor, symmetric: false, )" +
                                       observer + "}\n",
                                   options, context_.context);
    EXPECT_TRUE(report.ok()) << report.status().ToString();
    return ReadFile(options.out / "model.safetensors").value();
  }
};

// What sees sample by sample takes a pass of its own over the input that smoothing has divided;
// what needs the extremes takes them from the statistics, divided. Of one sample both see the same.
TEST_F(StaticObservers, AgreeOnOneSampleAndDifferOnMore) {
  const std::string one = Quantized("observer: static_minmax", 1);
  EXPECT_EQ(Quantized("observer: minmax", 1), one);
  EXPECT_EQ(Quantized("observer: memoryless_minmax", 1), one);
  EXPECT_NE(Quantized("observer: mse", 1), one);  // it cuts the range

  const std::string all = Quantized("observer: static_minmax", 16);
  EXPECT_NE(all, one);
  const std::string latest = Quantized("observer: memoryless_minmax", 16);
  EXPECT_NE(latest, all);
  EXPECT_EQ(Quantized("observer: minmax, observer_kwargs: {averaging_constant: 1}", 16), latest);
}

}  // namespace
}  // namespace octavo
