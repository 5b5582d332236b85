// Every family is quantized whole: smoothing alone changes nothing, and W8A8 is made, loaded and
// near the original.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "golden/quantize_fixture.h"
#include "runtime/load.h"
#include "support/model_logits.h"

namespace octavo {
namespace {

using testing::LogitsOf;
using testing::QuantizeGolden;
using testing::TestData;

class Families : public QuantizeGolden, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    model_ = Widened("arch/" + GetParam());
    const auto golden =
        SafetensorsFile::Open(TestData("arch/" + GetParam()) / "golden.safetensors");
    ASSERT_OK(golden);
    golden_ = *std::move(golden);
    std::ofstream lines(folder_.path() / "calibration.jsonl");
    for (int row = 0; row < 8; ++row) {
      lines << "{\"input_ids\": [" << row + 1;
      for (int i = 1; i < 16; ++i) lines << ", " << (row * 17 + i * 7) % 90;
      lines << "]}\n";
    }
  }

  QuantizeOptions FamilyOptions(const std::string& out) const {
    QuantizeOptions options = Options("base-llama", out);
    options.model = model_;
    return options;
  }

  // The largest difference of a logit to the original's, of the largest logit.
  double ErrorOf(const std::filesystem::path& folder) { return ErrorOf(model_, folder); }
  double ErrorOf(const std::filesystem::path& base, const std::filesystem::path& folder) {
    const auto logits = [&](const std::filesystem::path& of) {
      const auto loaded = LoadModel(of, {}, context_.context);
      EXPECT_TRUE(loaded.ok()) << loaded.status().message();
      return LogitsOf((*loaded)->model(), *golden_.Find("input_ids"), context_.context);
    };
    const std::vector<float> original = logits(base);
    const std::vector<float> changed = logits(folder);
    double largest = 0;
    double error = 0;
    for (size_t i = 0; i < original.size(); ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(original[i])));
      error = std::max(error, std::fabs(static_cast<double>(changed[i] - original[i])));
    }
    return error / largest;
  }

  bool has_pre_norms() {
    const auto loaded = LoadModel(model_, {.prepare = {}, .load_blocks = false}, context_.context);
    return (*loaded)->model().spec.pre_norms;
  }

  std::filesystem::path model_;
  SafetensorsFile golden_;
};

TEST_P(Families, SmoothingAloneKeepsTheFunction) {
  // Something has to be quantized: the embedding, which no smoothing touches.
  const std::string embedding =
      "QuantizationModifier: {config_groups: {e: {targets: [Embedding], weights: {num_bits: 8, "
      "strategy: channel}}}}}}";
  const QuantizeOptions plain = FamilyOptions("plain");
  ASSERT_OK(QuantizeBy("s_stage: {m_modifiers: {" + embedding, plain, context_.context));
  const QuantizeOptions options = FamilyOptions("smoothed");
  const auto report = QuantizeBy(
      "s_stage: {m_modifiers: {SmoothQuantModifier: {smoothing_strength: 0.8}, " + embedding,
      options, context_.context);
  if (!has_pre_norms()) {
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.status().message().find("behind attention and MLP"), std::string::npos)
        << report.status().message();
    return;
  }
  ASSERT_OK(report);
  EXPECT_LE(ErrorOf(plain.out, options.out), 1e-4);
  EXPECT_NE(ReadFile(options.out / "model.safetensors").value(),
            ReadFile(plain.out / "model.safetensors").value());
}

TEST_P(Families, W8A8IsMadeLoadedAndNear) {
  const QuantizeOptions options = FamilyOptions("w8a8");
  ASSERT_OK(
      QuantizeBy("s_stage: {m_modifiers: {GPTQModifier: {targets: [Linear], scheme: W8A8, "
                 "ignore: [lm_head]}}}",
                 options, context_.context));
  // The models are lively: a relative 1e-5 at the embedding moves a logit by up to 1e-3.
  EXPECT_LE(ErrorOf(options.out), 0.25);
}

TEST_P(Families, AwqAloneKeepsWhatEightBitsKeep) {
  const QuantizeOptions options = FamilyOptions("awq");
  ASSERT_OK(QuantizeBy(
      "s_stage: {m_modifiers: {AWQModifier: {}, QuantizationModifier: {ignore: [lm_head], "
      "config_groups: {g: {targets: [Linear], weights: {num_bits: 8, strategy: channel}}}}}}",
      options, context_.context));
  EXPECT_LE(ErrorOf(options.out), 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, Families,
                         ::testing::Values("llama_mha_bias", "mistral", "qwen2", "qwen3", "granite",
                                           "smollm3", "ministral3", "ernie4_5", "helium",
                                           "hunyuan_v1_dense", "gemma", "gemma2", "gemma3_text",
                                           "olmo2", "olmo3", "exaone4", "glm", "glm4", "phi3",
                                           "phi3_longrope"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace octavo
