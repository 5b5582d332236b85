#include "inspect/fused_scales.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tensor/small_floats.h"
#include "unit/inspect/inspected_checkpoint.h"

namespace octavo {
namespace {

using testing::InspectedCheckpoint;
using testing::TensorMap;

double Error(std::initializer_list<float> values, float scale, float largest) {
  std::array<int64_t, 256> counts = {};
  for (float value : values) ++counts[E4M3FromFloat(value)];
  const RoundingLoss loss = RequantizeE4M3(counts, scale, largest);
  return std::sqrt(loss.error / loss.energy);
}

TEST(FusedScales, RoundingAgainIsExactWhereItCanBe) {
  EXPECT_EQ(Error({1, -2, 448}, 0.5F, 0.5F), 0);
  EXPECT_EQ(Error({1, -2, 448}, 0.5F, 1.0F), 0);  // a power of two apart
  // 1.125 / 1.5 = 0.75; 1 / 1.5 = 0.6667 becomes 0.6875, which is 1.03125.
  EXPECT_EQ(Error({1.125F}, 1.0F, 1.5F), 0);
  EXPECT_NEAR(Error({1.0F}, 1.0F, 1.5F), 0.03125, 1e-12);
  // Below half the smallest step of the largest scale nothing is left.
  EXPECT_EQ(Error({1.0F}, 1.0F, 2048.0F), 1);
}

TEST(FusedScales, AreFoundInACheckpointWhoseLayersHaveTheirOwn) {
  const InspectedCheckpoint checkpoint("llama-fp8");
  const auto losses = FindFusedScaleLosses(checkpoint.Inspect(), checkpoint.context());
  ASSERT_OK(losses);
  EXPECT_EQ(losses->size(), 4U);  // q/k/v and gate/up of two blocks
  for (const FusedScaleLoss& loss : *losses) {
    EXPECT_GT(loss.ratio, 1);
    EXPECT_GT(loss.error, 0);
    EXPECT_LT(loss.error, 0.05);  // a quarter of E4M3's step of 1/8 and the like
    EXPECT_GE(loss.worst_error, loss.error);
  }
  EXPECT_EQ(FusedScaleTable(*losses).rows.size(), 2U);
}

TEST(FusedScales, OneGlobalScaleMakesAllButOneLayerWrong) {
  const auto halve = [](TensorMap* tensors) {
    Tensor& divisor = (*tensors)["model.layers.0.mlp.up_proj.weight_global_scale"];
    divisor.mutable_data<float>()[0] /= 2;
  };
  const InspectedCheckpoint whole("llama-nvfp4");
  EXPECT_TRUE(FindFusedScaleLosses(whole.Inspect(), whole.context())->empty());
  const InspectedCheckpoint torn("llama-nvfp4", halve);
  const auto losses = FindFusedScaleLosses(torn.Inspect(), torn.context());
  ASSERT_EQ(losses->size(), 1U);
  EXPECT_EQ(losses->front().kind, FusedScaleKind::kNvfp4Global);
  EXPECT_DOUBLE_EQ(losses->front().worst_error, 0.5);
  EXPECT_EQ(losses->front().worst_layer, "model.layers.0.mlp.up_proj");
}

}  // namespace
}  // namespace octavo
