// Caches and attention that are quantized: the scales are those of what the quantized model
// computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "golden/quantize_fixture.h"
#include "model/forward.h"
#include "runtime/load.h"
#include "runtime/states.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TestData;

class MadeCaches : public testing::QuantizeGolden {
 protected:
  std::unique_ptr<LoadedModel> Load(const std::filesystem::path& folder) {
    return LoadModel(folder, {}, context_.context).value();
  }

  // What attention of each block reads, over the calibration data: the largest magnitudes of
  // queries, keys and values.
  std::vector<std::vector<float>> LargestOf(const Model& model) {
    const auto file = SafetensorsFile::Open(TestData("checkpoints/calibration.safetensors"));
    const TensorView ids = file->Find("input_ids").value();
    const auto tokens = Tensor::CopyOf(ids);
    Batch batch;
    for (int64_t row = 0; row < ids.elements(); ++row) {
      batch.Add(tokens.data<int32_t>()[static_cast<size_t>(row)],
                static_cast<int32_t>(row / ids.shape[1]), row % ids.shape[1], false);
    }
    std::vector<SequenceState> states(static_cast<size_t>(ids.shape[0]));
    std::vector<SequenceState*> pointers;
    for (SequenceState& state : states) {
      state = MakeSequenceState(model, DType::kF32);
      pointers.push_back(&state);
    }
    std::vector<std::vector<float>> largest;
    Forward forward(model, context_.context);
    forward.set_attention_tap([&](const AttentionRows& rows) {
      std::vector<float>& block = largest.emplace_back();
      for (const Rows& x : {rows.queries, rows.keys, rows.values}) {
        float amax = 0;
        for (int64_t i = 0; i < x.m * x.k; ++i)
          amax = std::max(amax, std::fabs(x.data[i / x.k * x.stride + i % x.k]));
        block.push_back(amax);
      }
    });
    std::vector<float> hidden(static_cast<size_t>(batch.rows() * model.spec.hidden_size));
    EXPECT_TRUE(forward.Embed(batch, hidden).ok());
    for (int64_t i = 0; i < model.spec.num_layers; ++i) forward.Block(i, batch, pointers, hidden);
    return largest;
  }

  static float Bf16(float value) { return FloatFromBf16(Bf16FromFloat(value)); }

  float Scale(const Checkpoint& checkpoint, const std::string& name) {
    return ToFloatTensor(checkpoint.Find(name).value()).value().data<float>()[0];
  }

  static constexpr std::string_view kAttentionAndCache =
      "s_stage: {m_modifiers: {SmoothQuantModifier: {smoothing_strength: 0.5}, GPTQModifier: "
      "{ignore: [lm_head], config_groups: {a: {targets: [LlamaAttention], input_activations: "
      "{num_bits: 8, type: float}}, b: {targets: [Linear], weights: {num_bits: 4, strategy: "
      "group, group_size: 64}}, c: {targets: [Embedding], weights: {num_bits: 4, strategy: "
      "channel}}}}}}";
};

// The first block's are right only if it was run on the quantized embedding, the second's if the
// first was run with its own cache and queries rounded.
TEST_F(MadeCaches, ScalesAreThoseOfTheModelAsItIsServed) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(QuantizeBy(kAttentionAndCache, options, context_.context));
  const auto loaded = Load(options.out);
  const auto largest = LargestOf(loaded->model());
  ASSERT_EQ(largest.size(), 2U);
  for (size_t block = 0; block < 2; ++block) {
    const std::string attention = loaded->model().blocks[block].attention;
    for (size_t i = 0; i < 3; ++i) {
      const std::string name = attention + "." + "qkv"[i] + "_scale";
      EXPECT_EQ(Scale(loaded->checkpoint(), name), Bf16(largest[block][i] / 448)) << name;
    }
  }
}

TEST_F(MadeCaches, WithoutPropagationTheyAreThoseOfTheOriginal) {
  QuantizeOptions options = Options("base-llama", "out");
  options.propagate = Propagate::kNone;
  ASSERT_OK(QuantizeBy(kAttentionAndCache, options, context_.context));
  const auto loaded = Load(options.out);
  const auto largest = LargestOf(Load(options.model)->model());
  for (size_t block = 0; block < 2; ++block) {
    const std::string attention = loaded->model().blocks[block].attention;
    for (size_t i = 0; i < 3; ++i) {  // smoothing changes no key, but for rounding
      const std::string name = attention + "." + "qkv"[i] + "_scale";
      EXPECT_NEAR(Scale(loaded->checkpoint(), name) * 448 / largest[block][i], 1, 1.0 / 128)
          << name;
    }
  }
}

TEST_F(MadeCaches, TheReportHasScalesAndErrors) {
  const QuantizeOptions options = Options("base-llama", "out");
  const auto report = QuantizeLike("llama-fp8-dynamic-kv-head", options, context_.context);
  ASSERT_OK(report);
  ASSERT_EQ(report->attention.size(), 2U);
  for (const AttentionReport& module : report->attention) {
    EXPECT_EQ(module.key_scales.size(), 2U);
    EXPECT_EQ(module.value_scales.size(), 2U);
    EXPECT_TRUE(module.query_scales.empty());
    // Three bits of fraction: at most 1/16 of each value, about a third of it in the mean.
    for (const double error : {module.key_error, module.value_error}) {
      EXPECT_GT(error, 1e-4);
      EXPECT_LT(error, 1.0 / 256);
    }
  }
  const Value json = Json(options.out / "quantization_report.json");
  const Value& first = json.Find("attention")->as_array().front();
  EXPECT_EQ(first.Find("name")->as_string(), "model.layers.0.self_attn");
  EXPECT_EQ(first.Find("k_scale")->as_array().size(), 2U);
  EXPECT_EQ(first.Find("q_scale"), nullptr);
}

// As the library saves it: no group, no format, nothing ignored; and the weights as they were.
TEST_F(MadeCaches, ACacheAlone) {
  const QuantizeOptions options = Options("base-llama", "out");
  ASSERT_OK(
      QuantizeBy("s_stage: {m_modifiers: {QuantizationModifier: {kv_cache_scheme: "
                 "{num_bits: 8, type: int, strategy: attn_head}}}}",
                 options, context_.context));
  const Value config = *Json(options.out / "config.json").Find("quantization_config");
  EXPECT_TRUE(config.Find("config_groups")->as_object().empty());
  EXPECT_TRUE(config.Find("ignore")->as_array().empty());
  EXPECT_EQ(config.Find("format")->as_string(), "dense");
  const auto source = Load(options.model);
  const auto loaded = Load(options.out);
  for (const std::string& name : source->checkpoint().Names()) {
    const TensorView before = source->checkpoint().Find(name).value();
    const TensorView after = loaded->checkpoint().Find(name).value();
    EXPECT_EQ(std::memcmp(before.bytes, after.bytes, static_cast<size_t>(before.num_bytes())), 0);
  }
  EXPECT_EQ(loaded->model().blocks[1].cache.dtype, DType::kI8);
  EXPECT_EQ(CacheBytesOfToken(loaded->model(), DType::kBF16) * 2,
            CacheBytesOfToken(source->model(), DType::kBF16));
}

TEST_F(MadeCaches, FlagsMakeOne) {
  for (const std::string name : {"fp8", "int8"}) {
    RecipeFlags flags;
    flags.gptq = false;
    flags.kv_cache = name;
    const Recipe recipe = MakeRecipe(flags, context_.context.log).value();
    const auto& cache = recipe.modifiers.front()->quantization()->kv_cache_scheme;
    ASSERT_TRUE(cache.has_value());
    EXPECT_EQ(cache->type, name == "fp8" ? QuantizationType::kFloat : QuantizationType::kInt);
    EXPECT_EQ(ParseRecipe(RecipeYaml(recipe), "saved", context_.context.log)
                  .value()
                  .modifiers.front()
                  ->quantization()
                  ->kv_cache_scheme,
              cache);
  }
}

}  // namespace
}  // namespace octavo
