// Every scheme that a recipe can ask for, made from the library's own recipes and compared with
// what it saved: names, dtypes, shapes and config exactly, codes and scales by the library's
// rounding exactly, by ours as docs/numerics.md counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "golden/quantize_fixture.h"
#include "model/graph.h"
#include "quant/quantize_weight.h"
#include "quant/scheme.h"
#include "runtime/load.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::QuantizeGolden;
using testing::TestData;

struct Case {
  std::string name;
  double bytes_that_differ = 0;  // share of the bytes of codes, by our rounding
  bool to_nearest = true;        // codes do not depend on calibration
};

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.name;
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class MadeSchemes : public QuantizeGolden, public ::testing::WithParamInterface<Case> {
 protected:
  std::filesystem::path Expected() const { return TestData("checkpoints/" + GetParam().name); }
};

bool IsCode(const std::string& name) {
  return name.ends_with("_proj.weight") || name.ends_with(".weight_packed");
}

// Of queries, keys and values.
bool IsAttentionScale(const std::string& name) {
  return name.find("self_attn.") != std::string::npos && name.ends_with("_scale") &&
         name.find("_proj") == std::string::npos;
}

// The library finds them on a model in bfloat16, whose values, like the scales, are half a step
// off.
void ExpectSameScales(const std::string& name, const TensorView& found,
                      const TensorView& expected) {
  const Tensor ours = ToFloatTensor(found).value();
  const Tensor theirs = ToFloatTensor(expected).value();
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_NEAR(ours.data<float>()[at] / theirs.data<float>()[at], 1, 1.0 / 128) << name;
  }
}

TEST_P(MadeSchemes, NamesShapesAndConfigAreTheLibrarys) {
  QuantizeOptions options = Options("base-llama", "out");
  options.propagate = Propagate::kNone;
  ASSERT_OK(QuantizeLike(GetParam().name, options, context_.context));
  const JsonStyle style{.indent = 2, .sort_keys = true};
  EXPECT_EQ(WriteJson(*Json(options.out / "config.json").Find("quantization_config"), style),
            WriteJson(*Json(Expected() / "config.json").Find("quantization_config"), style));

  const auto ours = SafetensorsFile::Open(options.out / "model.safetensors");
  const auto theirs = SafetensorsFile::Open(Expected() / "model.safetensors");
  ASSERT_OK(ours);
  ASSERT_OK(theirs);
  EXPECT_EQ(ours->tensors().size(), theirs->tensors().size());
  int64_t bytes = 0;
  int64_t different = 0;
  for (const auto& [name, expected] : theirs->tensors()) {
    const auto found = ours->Find(name);
    ASSERT_OK(found);
    EXPECT_EQ(found->dtype, expected.dtype) << name;
    ASSERT_EQ(found->shape, expected.shape) << name;
    if (IsAttentionScale(name)) ExpectSameScales(name, *found, expected);
    if (!IsCode(name)) continue;
    for (int64_t i = 0; i < expected.num_bytes(); ++i)
      different += found->bytes[i] != expected.bytes[i];
    bytes += expected.num_bytes();
  }
  if (GetParam().to_nearest) {
    EXPECT_LE(static_cast<double>(different),
              GetParam().bytes_that_differ * static_cast<double>(bytes))
        << different << " of " << bytes;
  }
}

// By the library's own rounding every byte of codes and scales is met.
TEST_P(MadeSchemes, ReferenceArithmeticMeetsEveryByte) {
  if (!GetParam().to_nearest) GTEST_SKIP() << "its codes depend on calibration";
  const auto theirs =
      LoadModel(Expected(), {.prepare = {}, .load_blocks = false}, context_.context);
  ASSERT_OK(theirs);
  const auto source = SafetensorsFile::Open(TestData("checkpoints/base-llama/model.safetensors"));
  ASSERT_OK(source);
  for (const Block& block : (*theirs)->model().blocks) {
    for (const LinearGroup* group : block.groups()) {
      std::vector<Tensor> weights;
      LayerFacts facts;
      for (const LinearLayer& layer : group->layers) {
        weights.push_back(ToFloatTensor(source->Find(layer.name + ".weight").value()).value());
        facts.shared_amax =
            std::max(facts.shared_amax, LargestMagnitude(weights.back().data<float>()));
      }
      for (size_t i = 0; i < weights.size(); ++i) {
        const LinearLayer& layer = group->layers[i];
        if (!layer.quantization.weights) continue;
        auto weight =
            QuantizeToNearest(*layer.quantization.weights, weights[i].data<float>(), layer.n,
                              layer.k, DType::kBF16, Arithmetic::kReference, facts);
        ASSERT_OK(weight);
        const LayerTensors packed =
            SelectScheme(layer).value()->pack(layer, *std::move(weight)).value();
        for (const auto& [suffix, tensor] : packed) {
          const TensorView expected =
              (*theirs)->checkpoint().Find(layer.name + "." + suffix).value();
          ASSERT_EQ(tensor.num_bytes(), expected.num_bytes()) << layer.name << "." << suffix;
          EXPECT_EQ(std::memcmp(tensor.view().bytes, expected.bytes,
                                static_cast<size_t>(expected.num_bytes())),
                    0)
              << layer.name << "." << suffix;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Presets, MadeSchemes,
    ::testing::Values(Case{"llama-fp8", 0.03}, Case{"llama-fp8-dynamic", 0.03},
                      Case{"llama-fp8-block", 0.03}, Case{"llama-fp8-channel-a16", 0.03},
                      Case{"llama-fp8-tensor-a16", 0.03}, Case{"llama-nvfp4", 0.02},
                      Case{"llama-nvfp4a16", 0.02}, Case{"llama-mxfp4"}, Case{"llama-mxfp4a16"},
                      Case{"llama-mxfp8"}, Case{"llama-mxfp8a16"}, Case{"llama-w2a16", 0.02},
                      Case{"llama-w4a16", 0.02}, Case{"llama-w4a16-asym", 0.06},
                      Case{"llama-w4a16-channel", 0.02}, Case{"llama-w4a16-g32", 0.03},
                      Case{"llama-w4a16-tensor-asym", 0.03}, Case{"llama-w8a16", 0.12},
                      Case{"llama-w8a16-asym", 0.4}, Case{"llama-w4a8", 0.02},
                      Case{"llama-w4afp8", 0.02}, Case{"llama-w4a4", 0.02},
                      Case{"llama-mixed", 0.12}, Case{"llama-fp8-dynamic-kv", 0.03},
                      Case{"llama-fp8-dynamic-kv-head", 0.03}, Case{"llama-kv-int8", 0.12},
                      Case{"llama-w4a16-kv-int8", 0.02}, Case{"llama-attention-fp8", 0.03},
                      Case{"llama-w8a16-embed", 0.12}, Case{"llama-w4a16-head", 0.02},
                      Case{"llama-gptq-w4a16", 0, false}, Case{"llama-gptq-w4a16-asym", 0, false},
                      Case{"llama-gptq-nvfp4", 0, false}, Case{"llama-gptq-fp8-block", 0, false},
                      Case{"llama-awq-w4a16", 0, false}, Case{"llama-awq-w4a16-asym", 0, false},
                      Case{"llama-w4a16-mse", 0, false}, Case{"llama-w4a16-imatrix", 0, false},
                      Case{"llama-nvfp4-mse", 0, false}, Case{"llama-nvfp4-expanded", 0, false}),
    CaseName);

}  // namespace
}  // namespace octavo
