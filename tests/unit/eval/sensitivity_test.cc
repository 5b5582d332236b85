#include "eval/sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/eval/compared_models.h"

namespace octavo {
namespace {

using testing::LoadAlone;
using testing::SomeWindows;
using testing::TestContext;

const SensitivityOptions kAll = {.tokens = 120, .positions = 120};

class Sensitivity : public ::testing::Test {
 protected:
  Result<std::vector<UnitSensitivity>> Measure(LoadedModel* model) {
    LoadedModel* const models[] = {model};
    auto found = MeasureSensitivities(base_.get(), models, SomeWindows(), kAll, context_.context);
    if (!found.ok()) return found.status();
    return found->front();
  }
  std::unique_ptr<LoadedModel> Load(const std::string& name) {
    return LoadAlone(name, context_.context);
  }

  TestContext context_;
  std::unique_ptr<LoadedModel> base_ = Load("base-llama");
};

// log-softmax in double.
std::vector<double> LogProbabilities(std::span<const float> logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<double> result;
  for (const float logit : logits) result.push_back(static_cast<double>(logit) - std::log(sum));
  return result;
}

double MeanDivergence(const Model& base, const Model& model, const Context& context) {
  double sum = 0;
  int64_t rows = 0;
  WindowForward base_forward(base, context), model_forward(model, context);
  for (const Window& window : SomeWindows()) {
    EXPECT_TRUE(base_forward.Run(window.tokens).ok() && model_forward.Run(window.tokens).ok());
    for (int64_t row = 0; row < std::ssize(window.tokens); ++row, ++rows) {
      const auto p = LogProbabilities(base_forward.Logits(row, 1));
      const auto q = LogProbabilities(model_forward.Logits(row, 1));
      for (size_t i = 0; i < p.size(); ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
    }
  }
  return sum / static_cast<double>(rows);
}

TEST_F(Sensitivity, EqualLayersChangeNothing) {
  const auto same = Load("base-llama");
  const auto probe =
      SensitivityProbe::Make(base_.get(), SomeWindows(), kAll, context_.context).value();
  EXPECT_EQ(probe->positions(), 120);
  EXPECT_EQ(probe->Divergence({}), 0);
  const Replacement all[] = {{same.get(), 0, 0}, {same.get(), 0, 3}, {same.get(), 1, 2}};
  EXPECT_EQ(probe->Divergence(all), 0);
  const auto units = Measure(same.get());
  ASSERT_OK(units);
  EXPECT_TRUE(units->empty()) << "nothing is quantized";
}

// Every group replaced: the quantized model itself; and the base is the base again afterwards.
TEST_F(Sensitivity, AllLayersTogetherAreTheQuantizedModel) {
  const auto model = Load("llama-w4a16-g32");
  const double expected = MeanDivergence(base_->model(), model->model(), context_.context);
  const auto probe =
      SensitivityProbe::Make(base_.get(), SomeWindows(), kAll, context_.context).value();
  std::vector<Replacement> all;
  for (int64_t block = 0; block < 2; ++block) {
    for (size_t group = 0; group < 4; ++group) all.push_back({model.get(), block, group});
  }
  const double found = probe->Divergence(all);
  EXPECT_NEAR(found, expected, 1e-5 * expected);
  EXPECT_GT(found, 1e-6);
  EXPECT_EQ(probe->Divergence(all), found);
  EXPECT_EQ(probe->Divergence({}), 0);
  const double again = MeanDivergence(base_->model(), model->model(), context_.context);
  EXPECT_EQ(again, expected);
}

// What is kept of the blocks before changes nothing.
TEST_F(Sensitivity, FromALaterBlockOnTheSame) {
  const auto model = Load("llama-w4a16-g32");
  const auto probe =
      SensitivityProbe::Make(base_.get(), SomeWindows(), kAll, context_.context).value();
  const Replacement down[] = {{model.get(), 1, 3}};
  const double from_the_first = probe->Divergence(down);
  probe->Advance();
  EXPECT_EQ(probe->block(), 1);
  EXPECT_EQ(probe->Divergence(down), from_the_first);
}

TEST_F(Sensitivity, ALayerMadeBadComesFirst) {
  const auto model = Load("llama-w8a8");
  const auto bad = Load("llama-w2a16");
  LinearGroup& group = model->mutable_model().blocks[1].gate_up;
  std::swap(group.parts, bad->mutable_model().blocks[1].gate_up.parts);
  const auto units = Measure(model.get());
  ASSERT_OK(units);
  ASSERT_EQ(units->size(), 8U);
  const auto worst = std::max_element(
      units->begin(), units->end(),
      [](const UnitSensitivity& a, const UnitSensitivity& b) { return a.kl < b.kl; });
  EXPECT_EQ(worst->unit.layers, (std::vector<std::string>{"model.layers.1.mlp.gate_proj",
                                                          "model.layers.1.mlp.up_proj"}));
  for (const UnitSensitivity& unit : *units) {
    EXPECT_GT(unit.kl, 0) << unit.unit.layers.front();
    if (&unit == &*worst) continue;
    EXPECT_GT(worst->kl, 5 * unit.kl) << unit.unit.layers.front();
  }
  const std::string table = SensitivityTable(*units, 1);
  EXPECT_NE(table.find("model.layers.1.mlp.gate_proj, up_proj"), std::string::npos) << table;
  EXPECT_EQ(ToJson(*units).as_array().size(), 8U);
}

// Smoothed layers are put in with the norm before them; those that share scales go together.
TEST_F(Sensitivity, SmoothedLayersFit) {
  const auto smoothed = Load("llama-smooth8-gptq-w8a8");
  const auto units = Measure(smoothed.get());
  ASSERT_OK(units);
  ASSERT_EQ(units->size(), 8U);
  const double whole = MeanDivergence(base_->model(), smoothed->model(), context_.context);
  for (const UnitSensitivity& unit : *units)
    EXPECT_LT(unit.kl, 2 * whole) << unit.unit.layers.front();

  const auto awq = Load("llama-awq-w4a16");
  const auto tied = Measure(awq.get());
  ASSERT_OK(tied);
  const double of_awq = MeanDivergence(base_->model(), awq->model(), context_.context);
  for (const UnitSensitivity& unit : *tied)
    EXPECT_LT(unit.kl, 2 * of_awq) << unit.unit.layers.front();
}

TEST_F(Sensitivity, ARotatedModelIsRefused) {
  const auto model = Load("llama-spin-w8a8");
  const auto units = Measure(model.get());
  ASSERT_FALSE(units.ok());
  EXPECT_EQ(units.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(units.status().message().find("rotated"), std::string::npos);
}

TEST_F(Sensitivity, PositionsAreSpreadEvenly) {
  const auto probe = SensitivityProbe::Make(base_.get(), SomeWindows(),
                                            {.tokens = 100, .positions = 10}, context_.context);
  ASSERT_OK(probe);
  EXPECT_EQ((*probe)->positions(), 10);
}

}  // namespace
}  // namespace octavo
