// Checkpoints saved by llm-compressor: what is read, what one linear computes, and what the whole
// model computes.
#include "quant/scheme.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "support/golden_checkpoint.h"

namespace octavo {
namespace {

using testing::FindLayer;
using testing::GoldenCheckpoint;
using testing::kProbed;
using testing::Views;

// Root mean squares over the logits, from the index of the goldens.
struct Case {
  std::string name;
  double sensitivity;        // what float64 arithmetic or an embedding off by 1e-6 changes
  double activation_effect;  // what quantizing activations changes
  // How the input is quantized, as PreparedLinear::Describe says it.
  std::string input = "engine activation rule";

  // Symmetric scales of tokens put each negative maximum on a tie; no others do.
  bool has_ties() const { return input == "engine activation rule"; }
};

// In the names of tests; gtest would show the bytes, addresses among them.
void PrintTo(const Case& item, std::ostream* out) {
  *out << item.name;
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class SchemeGolden : public GoldenCheckpoint, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { Open(GetParam().name); }
};

TEST_P(SchemeGolden, UnpackedWeightsAreTheLibrarys) {
  ExpectUnpackedWeights();
}

TEST_P(SchemeGolden, OneLinearComputesWhatTheLibraryDoes) {
  const auto loaded = Load(ActivationRule::kLibrary, /*load_blocks=*/false);
  for (const std::string name : kProbed) {
    const LinearLayer* layer = FindLayer(loaded->model(), name);
    LinearGroup alone;
    alone.layers = {*layer};
    const LayerViews views = Views(loaded->checkpoint(), name);
    ASSERT_OK(PrepareGroup(&alone, {&views, 1}, {.activation_rule = ActivationRule::kLibrary},
                           context_.context));
    const std::string probe = "probe." + name + ".";
    const TensorView input = Golden(probe + "input");
    const int64_t m = input.shape[0];
    QuantizedRows rows;
    alone.parts[0]->QuantizeRows({input.data<float>().data(), m, layer->k, layer->k}, &rows,
                                 context_.context);
    std::vector<float> y(static_cast<size_t>(m * layer->n));
    alone.parts[0]->Multiply(rows, y.data(), layer->n, context_.context);

    const auto codes = Golden(probe + "codes").data<int8_t>();
    EXPECT_TRUE(std::equal(codes.begin(), codes.end(), rows.codes.begin())) << name;
    // One for all rows or one for each.
    const auto scales = Golden(probe + "scale").data<float>();
    for (size_t row = 0; row < rows.scales.size(); ++row)
      EXPECT_EQ(rows.scales[row], scales[row % scales.size()]) << name << " row " << row;
    ASSERT_EQ(rows.zero_points.empty(), !golden_.Find(probe + "zero_point").ok());
    for (size_t row = 0; row < rows.zero_points.size(); ++row) {
      const auto zero_points = Golden(probe + "zero_point").data<int8_t>();
      EXPECT_EQ(rows.zero_points[row], zero_points[row % zero_points.size()]) << name << " " << row;
    }
    const auto output = Golden(probe + "output").data<float>();
    float largest = 0;
    for (float value : output) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < output.size(); ++i)
      ASSERT_NEAR(y[i], output[i], 1e-5F * largest) << name << " " << i;
  }
}

TEST_P(SchemeGolden, WeightOnlyLogits) {
  ExpectWeightOnlyLogits();
}

// Where there are ties, a smoke test: one activation that falls the other way moves the logits by
// as much as the sensitivity says (README of the goldens, "Tolerances"). Else sharp, under both
// rules.
TEST_P(SchemeGolden, LogitsAreAsNearAsTiesAllow) {
  for (const ActivationRule rule : {ActivationRule::kLibrary, ActivationRule::kEngine}) {
    const auto loaded = Load(rule);
    const std::vector<float> logits = Logits(loaded->model());
    const auto expected = Golden("logits").data<float>();
    double sum = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      sum += std::pow(static_cast<double>(logits[i] - expected[i]), 2);
    // The engine's rule rounds every activation in another way.
    const double bound = !GetParam().has_ties()             ? 3 * GetParam().sensitivity
                         : rule == ActivationRule::kLibrary ? 2 * GetParam().sensitivity
                                                            : 1.5 * GetParam().activation_effect;
    EXPECT_LE(std::sqrt(sum / static_cast<double>(expected.size())), bound);
  }
}

TEST_P(SchemeGolden, WhatRunsIsWhatIsDeclared) {
  const auto loaded = Load(ActivationRule::kEngine);
  for (const Block& block : loaded->model().blocks) {
    for (const LinearGroup* group : block.groups()) {
      ASSERT_EQ(group->parts.size(), 1U) << "layers of one scheme run as one";
      EXPECT_TRUE(group->parts[0]->Describe().starts_with("W8A8 INT8: int8 x int8"))
          << group->parts[0]->Describe();
      EXPECT_TRUE(group->parts[0]->Describe().ends_with(", " + GetParam().input))
          << group->parts[0]->Describe();
    }
  }
  EXPECT_TRUE(loaded->model().head.parts[0]->Describe().starts_with("dense"))
      << "lm_head is in the ignore list";
}

INSTANTIATE_TEST_SUITE_P(
    W8A8, SchemeGolden,
    ::testing::Values(Case{"llama-w8a8", 0.0719, 0.19}, Case{"llama-gptq-w8a8", 0.0698, 0.207},
                      Case{"llama-smooth8-gptq-w8a8", 0.0297, 0.033},
                      Case{"odd-w8a8", 0.0525, 0.15}, Case{"llama-w8a8-tensor", 0.0555, 0.191},
                      Case{"llama-spin-w8a8", 0.0391, 0.032},
                      Case{"llama-smooth5-w8a8", 0.0282, 0.0337},
                      Case{"llama-w8a8-static", 2.08e-6, 0.503, "static activations"},
                      Case{"llama-w8a8-static-asym", 2.1e-6, 0.49, "static asymmetric activations"},
                      Case{"llama-w8a8-token-asym", 3.53e-6, 0.125, "asymmetric activations"}),
    CaseName);

}  // namespace
}  // namespace octavo
