// Checkpoints of every scheme that computes in floats from coded weights: what is read, what one
// linear computes, and what the whole model computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "support/golden_checkpoint.h"
#include "tensor/convert.h"
#include "tensor/small_floats.h"

namespace octavo {
namespace {

using testing::FindLayer;
using testing::GoldenCheckpoint;
using testing::kProbed;
using testing::Views;

// What float64 arithmetic or an embedding off by 1e-6 changes in the logits, from the index of the
// goldens; the largest element.
struct Case {
  std::string name;
  std::string description;  // PreparedLinear::Describe of q_proj
  double sensitivity = 2e-5;
  // Root mean square; where it is given, that of the logits is held to twice as much: symmetric
  // integer scales of tokens put each negative maximum on a tie (README of the goldens,
  // "Tolerances").
  double rms_sensitivity = 0;
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

class CodedSchemeGolden : public GoldenCheckpoint, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override { Open(GetParam().name); }
  bool HasLogits() const { return golden_.Find("logits").ok(); }
};

// Scales or codes of a probe as float32, whatever they are stored as.
std::vector<float> Floats(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.elements()));
  const auto* bytes = reinterpret_cast<const uint8_t*>(view.bytes);
  if (view.dtype == DType::kF8E4M3) {
    std::transform(bytes, bytes + values.size(), values.begin(), FloatFromE4M3);
  } else if (view.dtype == DType::kI8) {
    std::copy_n(view.data<int8_t>().begin(), values.size(), values.begin());
  } else {
    EXPECT_TRUE(ToFloat(view, values).ok());
  }
  return values;
}

TEST_P(CodedSchemeGolden, UnpackedWeightsAreTheLibrarys) {
  ExpectUnpackedWeights();
}

TEST_P(CodedSchemeGolden, WeightOnlyLogits) {
  ExpectWeightOnlyLogits();
}

TEST_P(CodedSchemeGolden, OneLinearComputesWhatTheLibraryDoes) {
  const auto loaded = Load(ActivationRule::kLibrary, /*load_blocks=*/false);
  for (const std::string name : kProbed) {
    const LinearLayer* layer = FindLayer(loaded->model(), name);
    const std::string probe = "probe." + name + ".";
    if (!golden_.Find(probe + "input").ok()) continue;
    LinearGroup alone;
    alone.layers = {*layer};
    const LayerViews views = Views(loaded->checkpoint(), name);
    ASSERT_OK(PrepareGroup(&alone, {&views, 1}, {.activation_rule = ActivationRule::kLibrary},
                           context_.context));
    const TensorView input = Golden(probe + "input");
    const int64_t m = input.shape[0];
    QuantizedRows rows;
    alone.parts[0]->QuantizeRows({input.data<float>().data(), m, layer->k, layer->k}, &rows,
                                 context_.context);
    std::vector<float> y(static_cast<size_t>(m * layer->n));
    alone.parts[0]->Multiply(rows, y.data(), layer->n, context_.context);

    if (golden_.Find(probe + "codes").ok() && !rows.values.empty()) {
      const std::vector<float> codes = Floats(Golden(probe + "codes"));
      const std::vector<float> scales = Floats(Golden(probe + "scale"));
      const size_t per_scale = rows.values.size() / rows.scales.size();
      for (size_t i = 0; i < rows.scales.size(); ++i)
        ASSERT_EQ(rows.scales[i], scales[i % scales.size()]) << name << " scale " << i;
      const auto global = views.find("input_global_scale");
      const float divisor = global == views.end() ? 1.0F : Floats(global->second).front();
      for (size_t i = 0; i < rows.values.size(); ++i)
        ASSERT_EQ(rows.values[i], codes[i] * (rows.scales[i / per_scale] / divisor))
            << name << " element " << i;
    }
    const auto output = Golden(probe + "output").data<float>();
    float largest = 0;
    for (float value : output) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < output.size(); ++i)
      ASSERT_NEAR(y[i], output[i], 1e-5F * largest) << name << " " << i;
  }
}

TEST_P(CodedSchemeGolden, LogitsAreAsNearAsRoundingAllows) {
  if (!HasLogits()) GTEST_SKIP() << "the library's own forward fails on it";
  const auto loaded = Load(ActivationRule::kLibrary);
  const std::vector<float> logits = Logits(loaded->model());
  const auto expected = Golden("logits").data<float>();
  double largest = 0;
  double difference = 0;
  double sum = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(static_cast<double>(logits[i] - expected[i]));
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
    difference = std::max(difference, error);
    sum += error * error;
  }
  if (GetParam().rms_sensitivity > 0) {
    EXPECT_LE(std::sqrt(sum / static_cast<double>(expected.size())),
              2 * GetParam().rms_sensitivity);
  } else {
    EXPECT_LE(difference, std::max(1e-5 * largest, 3 * GetParam().sensitivity));
  }
}

TEST_P(CodedSchemeGolden, WhatRunsIsWhatIsDeclared) {
  const auto loaded = Load(ActivationRule::kEngine);
  for (const Block& block : loaded->model().blocks) {
    for (const auto& part : block.qkv.parts)
      EXPECT_TRUE(part->Describe().starts_with(GetParam().description)) << part->Describe();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fp8, CodedSchemeGolden,
    ::testing::Values(
        Case{"llama-fp8", "W8A8 FP8: float8 weights, float8 activations, static tensor", 3.4e-5},
        Case{"llama-fp8-dynamic", "W8A8 FP8: float8 weights, float8 activations, dynamic token",
             0.0103},
        Case{"llama-fp8-block",
             "W8A8 FP8: float8 weights, float8 activations, dynamic group of 128", 0.0394},
        // The index has 2e-4: neither of its two disturbances tipped a code. Ours tips one, as
        // they do in llama-fp8-block, whose bound this is.
        Case{"llama-gptq-fp8-block",
             "W8A8 FP8: float8 weights, float8 activations, dynamic group of 128", 0.0394},
        Case{"odd-fp8", "W8A8 FP8: float8 weights, float8 activations, static tensor"},
        Case{"odd-fp8-dynamic", "W8A8 FP8: float8 weights, float8 activations, dynamic token",
             0.0057},
        Case{"odd-fp8-block", "W8A8 FP8: float8 weights, float8 activations, dynamic group of 128"},
        Case{"odd-fp8-block-token", "W8A8 FP8: float8 weights, float8 activations, dynamic token",
             0.109},
        Case{"llama-fp8-channel-a16", "W8A16 FP8: float8 weights, float activations"},
        Case{"llama-fp8-tensor-a16", "W8A16 FP8: float8 weights, float activations"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Fp4AndMx, CodedSchemeGolden,
    ::testing::Values(
        Case{"llama-nvfp4",
             "W4A4 NVFP4: float4 weights, float4 activations, dynamic tensor_group of 16"},
        Case{"llama-nvfp4-mse",
             "W4A4 NVFP4: float4 weights, float4 activations, dynamic tensor_group of 16"},
        Case{"llama-nvfp4-expanded",
             "W4A4 NVFP4: float4 weights, float4 activations, dynamic tensor_group of 16"},
        Case{"llama-gptq-nvfp4",
             "W4A4 NVFP4: float4 weights, float4 activations, dynamic tensor_group of 16"},
        Case{"llama-nvfp4a16", "W4A16 NVFP4: float4 weights, float activations"},
        Case{"llama-mxfp4", "W4A4 MXFP4: float4 weights, float4 activations, dynamic group of 32"},
        Case{"llama-mxfp4a16", "W4A16 MXFP4: float4 weights, float activations"},
        Case{"llama-mxfp8", "W8A8 MXFP8: float8 weights, float8 activations, dynamic group of 32"},
        Case{"llama-mxfp8a16", "W8A16 MXFP8: float8 weights, float activations"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Integers, CodedSchemeGolden,
    ::testing::Values(
        Case{"llama-w2a16", "WNA16: int2 weights, float activations"},
        Case{"llama-w4a16", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-asym", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-channel", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-g32", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-head", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-tensor-asym", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-mse", "WNA16: int4 weights, float activations"},
        Case{"llama-w4a16-imatrix", "WNA16: int4 weights, float activations"},
        Case{"llama-awq-w4a16", "WNA16: int4 weights, float activations"},
        Case{"llama-awq-w4a16-asym", "WNA16: int4 weights, float activations"},
        Case{"llama-gptq-w4a16", "WNA16: int4 weights, float activations"},
        Case{"llama-gptq-w4a16-asym", "WNA16: int4 weights, float activations"},
        Case{"llama-gptq-w4a16-unordered", "WNA16: int4 weights, float activations"},
        Case{"llama-w8a16", "WNA16: int8 weights, float activations"},
        Case{"llama-w8a16-asym", "WNA16: int8 weights, float activations"},
        Case{"old-actorder-group", "WNA16: int4 weights, float activations"},
        Case{"old-zero-point-unpacked", "WNA16: int4 weights, float activations"},
        Case{"old-compression-config", "WNA16: int4 weights, float activations"},
        Case{"llama-w4afp8", "W4A8 FP8: int4 weights, float8 activations, dynamic token", 4e-4},
        Case{"llama-w4afp8-packed", "W4A8 FP8: int4 weights, float8 activations, dynamic token",
             4e-4},
        Case{"llama-w4a8", "WNA Int: int4 weights, int8 activations, dynamic token", 0, 0.0608},
        Case{"llama-w4a8-packed", "WNA Int: int4 weights, int8 activations, dynamic token", 0,
             0.0608},
        Case{"llama-w4a4", "WNA Int: int4 weights, int4 activations, dynamic token", 0, 0.907},
        Case{"made-wna8o8", "WNA8O8: int4 weights, int8 activations, static tensor, int8 outputs"},
        Case{"llama-mixed", "WNA16: int4 weights, float activations", 0, 0.00322}),
    CaseName);

}  // namespace
}  // namespace octavo
