// Static scales of inputs, calibrated on the goldens' data, against those that llm-compressor
// saved.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/safetensors.h"
#include "quant/observers/activation_observer.h"
#include "runtime/load.h"
#include "support/first_block.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TestContext;
using testing::TestData;

// The observers of all groups of block 0 of base-llama, by the name of each group's first layer.
// What enters that block's layers before down_proj depends little on how others are quantized.
std::map<std::string, ActivationObserver> Calibrate(const QuantizationArgs& args) {
  TestContext context;
  const auto loaded = LoadModel(TestData("checkpoints/base-llama"), {}, context.context);
  EXPECT_TRUE(loaded.ok());
  const Model& model = (*loaded)->model();
  std::map<std::string, ActivationObserver> observers;
  const auto observe = [&](const LinearGroup& group, const Rows& x) {
    const std::string& name = group.layers.front().name;
    const auto made = ActivationObserver::Make(args, DType::kBF16);
    ASSERT_TRUE(made.ok());
    EXPECT_TRUE(observers.try_emplace(name, *made).first->second.Observe(x).ok());
  };
  testing::TapFirstBlock(model, observe, context.context);
  return observers;
}

TEST(StaticInputGolden, ScalesAreTheLibrarys) {
  for (const std::string name : {"llama-w8a8-static", "llama-w8a8-static-asym"}) {
    TestContext context(1);
    const auto file =
        SafetensorsFile::Open(TestData("checkpoints/" + name + "/model.safetensors")).value();
    QuantizationArgs args;  // static, one a tensor
    args.symmetric = name.ends_with("static");
    args.observer = "static_minmax";
    const auto observers = Calibrate(args);
    ASSERT_EQ(observers.size(), 4U);
    for (const auto& [layer, observer] : observers) {
      SCOPED_TRACE(name + " " + layer);
      const auto scales = observer.Scales();
      ASSERT_OK(scales);
      // The library calibrates in bfloat16, we in float32: the last bits of extremes differ.
      const float expected =
          ToFloatTensor(file.Find(layer + ".input_scale").value()).value().data<float>()[0];
      EXPECT_NEAR(scales->scale.data<float>()[0], expected, 0.01F * expected);
      if (args.symmetric) continue;
      EXPECT_NEAR(scales->zero_point.data<int8_t>()[0],
                  file.Find(layer + ".input_zero_point").value().data<int8_t>()[0], 1);
    }
  }
}

}  // namespace
}  // namespace octavo
