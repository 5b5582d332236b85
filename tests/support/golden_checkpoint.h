// A checkpoint saved by llm-compressor, with what the library computed from it beside.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "quant/scheme.h"
#include "runtime/load.h"
#include "support/golden_files.h"
#include "support/model_logits.h"
#include "tensor/convert.h"

namespace octavo::testing {

// The layer of that name in a loaded graph.
inline const LinearLayer* FindLayer(const Model& model, const std::string& name) {
  for (const Block& block : model.blocks) {
    for (const LinearGroup* group : block.groups()) {
      for (const LinearLayer& layer : group->layers) {
        if (layer.name == name) return &layer;
      }
    }
  }
  return nullptr;
}

inline LayerViews Views(const Checkpoint& checkpoint, const std::string& module) {
  LayerViews views;
  for (const std::string& name : checkpoint.NamesOf(module)) {
    views[name.substr(module.size() + 1)] = checkpoint.Find(name).value();
  }
  return views;
}

// What the goldens look into.
inline constexpr const char* kProbed[] = {"model.layers.0.self_attn.q_proj",
                                          "model.layers.0.mlp.down_proj"};

class GoldenCheckpoint : public ::testing::Test {
 protected:
  // tests/data/checkpoints/<name>.
  void Open(const std::string& name) {
    folder_ = TestData("checkpoints/" + name);
    // The golden tensors lie beside the weights: load from a copy without them.
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(folder_ / file, copy_.path() / file);
    }
    auto golden = SafetensorsFile::Open(folder_ / "golden.safetensors");
    ASSERT_OK(golden);
    golden_ = *std::move(golden);
  }

  std::unique_ptr<LoadedModel> Load(ActivationRule rule, bool load_blocks = true) {
    auto loaded =
        LoadModel(copy_.path(), {.prepare = {.activation_rule = rule}, .load_blocks = load_blocks},
                  context_.context);
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    return std::move(loaded).value();
  }

  TensorView Golden(const std::string& name) const { return golden_.Find(name).value(); }

  // Logits [B, T, V] of the golden's input ids.
  std::vector<float> Logits(const Model& model) {
    return testing::LogitsOf(model, Golden("input_ids"), context_.context);
  }

  // The dequantized weights of the probed layers, bit for bit in bf16.
  void ExpectUnpackedWeights() {
    const auto loaded = Load(ActivationRule::kLibrary, /*load_blocks=*/false);
    for (const std::string name : kProbed) {
      const LinearLayer* layer = FindLayer(loaded->model(), name);
      ASSERT_NE(layer, nullptr);
      const Scheme* scheme = SelectScheme(*layer).value();
      const Tensor weight = scheme->dequantize(*layer, Views(loaded->checkpoint(), name)).value();
      const TensorView expected = Golden("dequant." + name);
      const auto bits = expected.data<uint16_t>();
      for (size_t i = 0; i < bits.size(); ++i) {
        ASSERT_EQ(Bf16FromFloat(weight.data<float>()[i]), bits[i]) << name << " element " << i;
      }
    }
  }

  // Dequantized weights, float activations, keys and values: sharp, since nothing rounds.
  void ExpectWeightOnlyLogits() {
    const auto loaded = Load(ActivationRule::kLibrary, /*load_blocks=*/false);
    std::vector<Tensor> weights;  // alive as long as the layers that read them
    for (int64_t i = 0; i < loaded->model().spec.num_layers; ++i) {
      ASSERT_OK(loaded->LoadBlock(i, context_.context));
      Block& block = loaded->mutable_model().blocks[static_cast<size_t>(i)];
      block.cache = {};
      block.query_scales.clear();
      for (LinearGroup* group : block.groups()) {
        std::vector<LayerViews> views;
        for (LinearLayer& layer : group->layers) {
          const Scheme* scheme = SelectScheme(layer).value();
          weights.push_back(
              scheme->dequantize(layer, Views(loaded->checkpoint(), layer.name)).value());
          views.push_back({{"weight", weights.back().view()}});
          layer.quantization = {};
        }
        ASSERT_OK(PrepareGroup(group, views, {}, context_.context));
      }
    }
    const std::vector<float> logits = Logits(loaded->model());
    const auto expected = Golden("logits_weight_only").data<float>();
    float largest = 0;
    for (float logit : expected) largest = std::max(largest, std::fabs(logit));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], 1e-4F * largest) << i;
  }

  TestContext context_;
  testing::TemporaryFolder copy_;
  std::filesystem::path folder_;
  SafetensorsFile golden_;
};

}  // namespace octavo::testing
