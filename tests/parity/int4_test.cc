// Four-bit weights times integer activations: that they are multiplied in integers, and that codes
// and scales are the library's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/golden_checkpoint.h"

namespace octavo {
namespace {

class Int4Golden : public testing::GoldenCheckpoint {
 protected:
  // The prepared layer alone, with the library's rule.
  void ExpectProbe(const LoadedModel& loaded, const std::string& name) {
    const LinearLayer* layer = testing::FindLayer(loaded.model(), name);
    LinearGroup alone;
    alone.layers = {*layer};
    const LayerViews views = testing::Views(loaded.checkpoint(), name);
    ASSERT_OK(PrepareGroup(&alone, {&views, 1}, {.activation_rule = ActivationRule::kLibrary},
                           context_.context));
    const PreparedLinear& linear = *alone.parts[0];
    EXPECT_NE(linear.Describe().find("MultiplyInt4"), std::string::npos) << linear.Describe();
    EXPECT_FALSE(linear.reads_file());

    const std::string probe = "probe." + name + ".";
    const TensorView input = Golden(probe + "input");
    const int64_t m = input.shape[0];
    QuantizedRows rows;
    linear.QuantizeRows({input.data<float>().data(), m, layer->k, layer->k}, &rows,
                        context_.context);
    const auto codes = Golden(probe + "codes").data<int8_t>();
    EXPECT_TRUE(std::equal(codes.begin(), codes.end(), rows.codes.begin(), rows.codes.end()));
    const auto scales = Golden(probe + "scale").data<float>();
    EXPECT_TRUE(std::equal(scales.begin(), scales.end(), rows.scales.begin(), rows.scales.end()));

    std::vector<float> y(static_cast<size_t>(m * layer->n));
    linear.Multiply(rows, y.data(), layer->n, context_.context);
    const auto output = Golden(probe + "output").data<float>();
    float largest = 0;
    for (float value : output) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < output.size(); ++i) ASSERT_NEAR(y[i], output[i], 1e-5F * largest) << i;
  }
};

TEST_F(Int4Golden, ProbesAreTheLibrarys) {
  for (const std::string checkpoint : {"llama-w4a8", "llama-w4a8-packed", "llama-w4a4"}) {
    SCOPED_TRACE(checkpoint);
    const testing::TemporaryFolder folder;
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(testing::TestData("checkpoints/" + checkpoint) / file,
                                 folder.path() / file);
    }
    golden_ =
        SafetensorsFile::Open(testing::TestData("checkpoints/" + checkpoint) / "golden.safetensors")
            .value();
    const auto loaded =
        LoadModel(folder.path(), {.prepare = {}, .load_blocks = false}, context_.context).value();
    for (const std::string name : testing::kProbed) {
      SCOPED_TRACE(name);
      ExpectProbe(*loaded, name);
    }
  }
}

}  // namespace
}  // namespace octavo
