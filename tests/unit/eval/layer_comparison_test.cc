#include "eval/layer_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "eval/layer_relation.h"
#include "tensor/convert.h"
#include "unit/eval/compared_models.h"

namespace octavo {
namespace {

using testing::LoadAlone;
using testing::SomeWindows;
using testing::TestContext;

const ComparedLayer& Find(const LayerComparison& comparison, const std::string& name) {
  for (const ComparedLayer& layer : comparison.layers) {
    if (layer.name == name) return layer;
  }
  ADD_FAILURE() << name;
  return comparison.layers.front();
}

class CompareLayersTest : public ::testing::Test {
 protected:
  LayerComparison Compare(const std::string& name) {
    const auto model = LoadAlone(name, context_.context);
    auto compared = CompareLayers(*base_, *model, SomeWindows(), context_.context);
    EXPECT_TRUE(compared.ok()) << compared.status().ToString();
    return std::move(compared).value();
  }

  TestContext context_;
  std::unique_ptr<LoadedModel> base_ = LoadAlone("base-llama", context_.context);
};

TEST_F(CompareLayersTest, AModelEqualsItself) {
  const LayerComparison comparison = Compare("base-llama");
  EXPECT_EQ(comparison.positions, 120);
  ASSERT_EQ(comparison.layers.size(), 14U);
  ASSERT_EQ(comparison.blocks.size(), 2U);
  for (const ComparedLayer& layer : comparison.layers) {
    EXPECT_EQ(layer.output->relative, 0) << layer.name;
    EXPECT_NEAR(layer.output->cosine, 1, 1e-12);
    EXPECT_TRUE(std::isinf(*layer.weight_sqnr_db));
    EXPECT_EQ(layer.outliers_before, layer.outliers_after);
    EXPECT_EQ(layer.scheme, "");
  }
  for (const ComparedBlock& block : comparison.blocks) {
    EXPECT_EQ(block.alone->relative, 0);
    EXPECT_EQ(block.accumulated->relative, 0);
  }
  EXPECT_TRUE(comparison.notes.empty());
}

// Sums in double over the captured inputs and the dequantized weights.
TEST_F(CompareLayersTest, ErrorsAreThoseOfAComputationByHand) {
  const LayerComparison comparison = Compare("llama-w4a16-g32");
  const auto model = LoadAlone("llama-w4a16-g32", context_.context);
  const std::string name = "model.layers.0.mlp.down_proj";
  const LinearLayer& layer = model->model().blocks[0].down.layers.front();
  ASSERT_EQ(layer.name, name);
  const Tensor weight = base_->Weight(base_->model().blocks[0].down.layers.front()).value();
  const Tensor quantized = model->Weight(layer).value();
  const auto w = weight.data<float>();
  const auto wq = quantized.data<float>();
  const auto n = static_cast<size_t>(layer.n);
  const auto k = static_cast<size_t>(layer.k);

  double energy = 0, error = 0, model_energy = 0, dot = 0;
  std::vector<float> largest(k);
  Forward forward(base_->model(), context_.context);
  forward.set_tap([&](const LinearGroup& group, const Rows& x) {
    if (group.layers.front().name != name) return;
    for (int64_t row = 0; row < x.m; ++row) {
      const float* in = x.data + row * x.stride;
      for (size_t j = 0; j < k; ++j) largest[j] = std::max(largest[j], std::fabs(in[j]));
      for (size_t i = 0; i < n; ++i) {
        double y = 0, yq = 0;
        for (size_t j = 0; j < k; ++j) {
          y += static_cast<double>(in[j]) * static_cast<double>(w[i * k + j]);
          yq += static_cast<double>(in[j]) * static_cast<double>(wq[i * k + j]);
        }
        energy += y * y;
        model_energy += yq * yq;
        dot += y * yq;
        error += (yq - y) * (yq - y);
      }
    }
  });
  for (const Window& window : SomeWindows()) {
    Batch batch;
    for (size_t i = 0; i < window.tokens.size(); ++i)
      batch.Add(window.tokens[i], 0, static_cast<int64_t>(i), false);
    std::vector<float> hidden(window.tokens.size() * 256);
    ASSERT_OK(forward.Embed(batch, hidden));
    SequenceState state = MakeSequenceState(base_->model(), DType::kF32);
    SequenceState* states[] = {&state};
    forward.Block(0, batch, states, hidden);
  }
  const ComparedLayer& compared = Find(comparison, name);
  EXPECT_NEAR(compared.output->relative, error / energy, 1e-5 * error / energy);
  EXPECT_NEAR(compared.output->cosine, dot / std::sqrt(energy * model_energy), 1e-9);
  EXPECT_GT(compared.output->relative, 1e-4) << "four bits lose something";

  double weights = 0, noise = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    weights += static_cast<double>(w[i]) * static_cast<double>(w[i]);
    const double d = static_cast<double>(wq[i]) - static_cast<double>(w[i]);
    noise += d * d;
  }
  EXPECT_NEAR(*compared.weight_sqnr_db, 10 * std::log10(weights / noise), 1e-9);
  std::sort(largest.begin(), largest.end());
  EXPECT_NEAR(compared.outliers_before,
              static_cast<double>(largest.back()) / static_cast<double>(largest[k / 2]), 1e-6);
}

TEST_F(CompareLayersTest, WhatABlockGetsCountsOnlyInItsAccumulatedError) {
  const LayerComparison comparison = Compare("llama-w4a16-g32");
  const auto& blocks = comparison.blocks;
  EXPECT_EQ(blocks[0].alone->relative, blocks[0].accumulated->relative);
  EXPECT_GT(blocks[1].accumulated->relative, blocks[1].alone->relative);
}

// Inputs and weights are scaled against each other: undone, as much is lost as without, or less.
TEST_F(CompareLayersTest, SmoothedLayersAreComparedInTheOriginalsUnits) {
  const LayerComparison plain = Compare("llama-w8a8");
  const LayerComparison smoothed = Compare("llama-smooth8-gptq-w8a8");
  for (const ComparedLayer& layer : smoothed.layers) {
    ASSERT_TRUE(layer.output && layer.weight_sqnr_db) << layer.name;
    EXPECT_LT(layer.output->relative, 4 * Find(plain, layer.name).output->relative) << layer.name;
    EXPECT_GT(*layer.weight_sqnr_db, 25) << layer.name;
  }
  const ComparedLayer& gate = Find(smoothed, "model.layers.0.mlp.gate_proj");
  EXPECT_LT(gate.outliers_after, gate.outliers_before);
  EXPECT_EQ(gate.scheme, "W8A8");
}

// Puts row i times rows(i), column j times columns(j), of a stored matrix (a norm: one row) in its
// place.
template <typename Scale>
void Rescale(LoadedModel* model, const std::string& tensor, const Scale& scale) {
  const TensorView stored = model->checkpoint().Find(tensor).value();
  Tensor values = ToFloatTensor(stored).value();
  const auto columns = static_cast<size_t>(stored.shape.back());
  for (size_t i = 0; i < values.data<float>().size(); ++i)
    values.mutable_data<float>()[i] *= scale(i / columns, i % columns);
  const auto made =
      std::make_shared<Tensor>(FromFloat(values.data<float>(), stored.dtype, stored.shape).value());
  model->mutable_checkpoint().Replace({}, tensor,
                                      [made]() -> Result<Tensor> { return made->Clone(); });
}

// Powers of two: nothing is rounded, and the scaled model computes the same.
float ScaleOf(size_t channel) {
  return std::ldexp(1.0F, static_cast<int>(channel % 5) - 2);
}

// Where no norm tells them, scales between layers are found from the weights.
TEST_F(CompareLayersTest, ScalesFromOneLayerToTheNextAreUndone) {
  const auto model = LoadAlone("base-llama", context_.context);
  model->ReleaseBlock(1);
  const std::string mlp = "model.layers.1.mlp.";
  Rescale(model.get(), "model.layers.1.post_attention_layernorm.weight",
          [](size_t, size_t column) { return 1 / ScaleOf(column); });
  Rescale(model.get(), mlp + "gate_proj.weight",
          [](size_t, size_t column) { return ScaleOf(column); });
  Rescale(model.get(), mlp + "up_proj.weight",
          [](size_t row, size_t column) { return ScaleOf(column) / ScaleOf(row); });
  Rescale(model.get(), mlp + "down_proj.weight",
          [](size_t, size_t column) { return ScaleOf(column); });
  ASSERT_OK(model->LoadBlock(1, context_.context));

  const auto relation = RelateBlocks(*base_, *model, 1, context_.context);
  ASSERT_OK(relation);
  EXPECT_TRUE(relation->mlp_tied);
  EXPECT_FALSE(relation->attention_tied || relation->rotated);
  const auto compared = CompareLayers(*base_, *model, SomeWindows(), context_.context);
  ASSERT_OK(compared);
  for (const ComparedLayer& layer : compared->layers) {
    EXPECT_LT(layer.output->relative, 1e-10) << layer.name;
    EXPECT_GT(*layer.weight_sqnr_db, 100) << layer.name;
  }
  EXPECT_NE(Find(*compared, mlp + "gate_proj").outliers_after,
            Find(*compared, mlp + "gate_proj").outliers_before);
  EXPECT_LT(compared->blocks[1].accumulated->relative, 1e-10);
}

TEST_F(CompareLayersTest, WhatAwqMadeIsComparable) {
  const LayerComparison plain = Compare("llama-w4a16-g32");
  const LayerComparison comparison = Compare("llama-awq-w4a16");
  for (const ComparedLayer& layer : comparison.layers) {
    ASSERT_TRUE(layer.output && layer.weight_sqnr_db) << layer.name;
    EXPECT_LT(layer.output->relative, 4 * Find(plain, layer.name).output->relative) << layer.name;
  }
}

TEST_F(CompareLayersTest, ARotatedModelIsNotComparedLayerByLayer) {
  const LayerComparison comparison = Compare("llama-spin-w8a8");
  for (const ComparedLayer& layer : comparison.layers) EXPECT_FALSE(layer.output) << layer.name;
  for (const ComparedBlock& block : comparison.blocks)
    EXPECT_FALSE(block.alone || block.accumulated);
  ASSERT_FALSE(comparison.notes.empty());
  EXPECT_NE(comparison.notes.front().find("rotated"), std::string::npos);
}

TEST_F(CompareLayersTest, ModelsOfOtherSizesAreRefusedWithBoth) {
  const auto model = LoadAlone("base-odd", context_.context);
  const auto compared = CompareLayers(*base_, *model, SomeWindows(), context_.context);
  ASSERT_FALSE(compared.ok());
  EXPECT_NE(compared.status().message().find("hidden size 256"), std::string::npos)
      << compared.status().message();
}

TEST_F(CompareLayersTest, TableAndJson) {
  const LayerComparison comparison = Compare("llama-w4a16-g32");
  const std::string table = LayerTable(comparison, 3);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 1 + 3 + 1 + 2) << table;
  const std::string all = LayerTable(comparison, 0);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1 + 14 + 1 + 2) << all;
  const Value json = ToJson(comparison);
  EXPECT_EQ(json.Find("layers")->as_array().size(), 14U);
  EXPECT_TRUE(ParseJson(WriteJson(json), "json").ok());
  const Value rotated = ToJson(Compare("llama-spin-w8a8"));
  EXPECT_TRUE(rotated.Find("layers")->as_array().front().Find("output_error")->is_null());
}

}  // namespace
}  // namespace octavo
