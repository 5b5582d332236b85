// WNA8O8, made: the scales of outputs are those of what the quantized weights compute.
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "kernels/matmul_float/matmul_float.h"
#include "quantize_fixture.h"
#include "runtime/load.h"
#include "support/first_block.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::QuantizeGolden;

constexpr std::string_view kRecipe = R"(
quant_stage:
  quant_modifiers:
    QuantizationModifier:
      ignore: [lm_head]
      config_groups:
        group_0:
          targets: [Linear]
          weights: {num_bits: 4, type: int, symmetric: true, strategy: channel}
          input_activations: {num_bits: 8, type: int, symmetric: true, strategy: tensor, dynamic: false}
          output_activations: {num_bits: 8, type: int, symmetric: true, strategy: tensor, dynamic: false}
)";

class StaticOutputs : public QuantizeGolden {
 protected:
  // Of the projections of block 0, whose input no other layer changes: the largest magnitude that
  // their dequantized weights make of the calibration data.
  std::map<std::string, float> LargestOutputs(const LoadedModel& loaded) {
    std::map<std::string, float> largest;
    const Model& model = loaded.model();
    const auto observe = [&](const LinearGroup& group, const Rows& x) {
      if (&group != &model.blocks[0].qkv) return;
      for (const LinearLayer& layer : group.layers) {
        const Scheme* scheme = SelectScheme(layer).value();
        LayerViews views;
        for (const std::string& name : loaded.checkpoint().NamesOf(layer.name))
          views[name.substr(layer.name.size() + 1)] = loaded.checkpoint().Find(name).value();
        const Tensor weight = scheme->dequantize(layer, views).value();
        std::vector<float> y(static_cast<size_t>(x.m * layer.n));
        MultiplyFloat(weight.view(), {}, x.data, x.stride, x.m, y.data(), layer.n,
                      context_.context.isa, context_.context.pool);
        for (float value : y) largest[layer.name] = std::max(largest[layer.name], std::fabs(value));
      }
    };
    testing::TapFirstBlock(model, observe, context_.context);
    return largest;
  }
};

TEST_F(StaticOutputs, CoverWhatTheQuantizedWeightsCompute) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(QuantizeBy(kRecipe, options, context_.context));
  const auto loaded = LoadModel(options.out, {}, context_.context);
  ASSERT_OK(loaded);
  EXPECT_EQ((*loaded)->model().blocks[1].down.parts[0]->Describe(),
            "WNA8O8: int4 weights, int8 activations, static tensor, int8 outputs, static tensor");
  const auto largest = LargestOutputs(**loaded);
  ASSERT_EQ(largest.size(), 3U);
  for (const auto& [layer, amax] : largest) {
    const TensorView scale = (*loaded)->checkpoint().Find(layer + ".output_scale").value();
    EXPECT_EQ(scale.dtype, DType::kBF16);
    // 255 steps span twice the magnitude; bfloat16 has 8 bits.
    EXPECT_NEAR(ToFloatTensor(scale).value().data<float>()[0], amax * 2 / 255, amax / 127 / 256)
        << layer;
  }
}

TEST_F(StaticOutputs, NeedCalibrationData) {
  QuantizeOptions options = Options("base-llama", "out");
  options.calibration.clear();
  const auto report = QuantizeBy(kRecipe, options, context_.context);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().ToString().find("static scales of outputs"), std::string::npos)
      << report.status().ToString();
}

}  // namespace
}  // namespace octavo
