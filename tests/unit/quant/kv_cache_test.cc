#include "quant/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/checkpoint_writer.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

constexpr char kModule[] = "model.layers.0.self_attn";
constexpr int64_t kHeads = 16;
constexpr int64_t kKvHeads = 8;

class KvCacheTest : public ::testing::Test {
 protected:
  static QuantizationArgs Float8() {
    QuantizationArgs args;
    args.type = QuantizationType::kFloat;
    return args;
  }

  void Add(const std::string& name, const std::vector<float>& values, Shape shape,
           DType dtype = DType::kF32) {
    tensors_[name] = FromFloat(values, dtype, std::move(shape)).value();
  }

  Result<AttentionScales> Read(bool with_query = false) {
    std::vector<std::pair<std::string, TensorView>> views;
    for (const auto& [name, tensor] : tensors_) views.emplace_back(name, tensor.view());
    EXPECT_TRUE(WriteSafetensors(folder_.path() / "model.safetensors", views).ok());
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / "config.json", "{}").ok());
    const Checkpoint checkpoint = Checkpoint::Open(folder_.path()).value();
    return ReadAttentionScales(checkpoint,
                               {.module = kModule,
                                .k_proj = "model.layers.0.self_attn.k_proj",
                                .v_proj = "model.layers.0.self_attn.v_proj",
                                .heads = kHeads,
                                .kv_heads = kKvHeads},
                               &args_, with_query ? &args_ : nullptr);
  }

  QuantizationArgs args_ = Float8();
  std::map<std::string, Tensor> tensors_ = {};
  testing::TemporaryFolder folder_;
};

TEST_F(KvCacheTest, OneScaleServesAllHeads) {
  Add("model.layers.0.self_attn.k_scale", {0.5F}, {1}, DType::kBF16);
  Add("model.layers.0.self_attn.v_scale", {2}, {1}, DType::kBF16);
  const AttentionScales scales = Read().value();
  EXPECT_EQ(scales.cache->dtype, DType::kF8E4M3);
  EXPECT_EQ(scales.cache->key_scales, std::vector<float>(kKvHeads, 0.5F));
  EXPECT_EQ(scales.cache->value_scales, std::vector<float>(kKvHeads, 2));
  EXPECT_TRUE(scales.warnings.empty());
  EXPECT_EQ(scales.tensors.size(), 2U);
}

TEST_F(KvCacheTest, EachHeadMayHaveItsOwn) {
  const std::vector<float> own = {1, 2, 3, 4, 5, 6, 7, 8};
  Add("model.layers.0.self_attn.k_scale", own, {kKvHeads, 1, 1});
  Add("model.layers.0.self_attn.v_scale", {1}, {});
  args_.strategy = Strategy::kAttnHead;
  args_.type = QuantizationType::kInt;
  const AttentionScales scales = Read().value();
  EXPECT_EQ(scales.cache->dtype, DType::kI8);
  EXPECT_EQ(scales.cache->key_scales, own);
}

TEST_F(KvCacheTest, EverySpellingIsRead) {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"k_scale", "v_scale"},
           {"attn.k_scale", "attn.v_scale"},
           {"k_proj.k_scale", "v_proj.v_scale"},
           {"k_proj.output_scale", "v_proj.output_scale"},
           {"kv_scale", "kv_scale"}}) {
    SCOPED_TRACE(key);
    tensors_.clear();
    Add(std::string(kModule) + "." + key, {3}, {1});
    Add(std::string(kModule) + "." + value, {3}, {1});
    const AttentionScales scales = Read().value();
    EXPECT_EQ(scales.cache->key_scales[0], 3);
    EXPECT_EQ(scales.cache->value_scales[7], 3);
    EXPECT_TRUE(scales.warnings.empty());
  }
}

TEST_F(KvCacheTest, WhatIsMissingIsReplacedAndSaid) {
  Add("model.norm.weight", {1}, {1});
  const AttentionScales none = Read().value();
  EXPECT_EQ(none.cache->key_scales, std::vector<float>(kKvHeads, 1));
  ASSERT_EQ(none.warnings.size(), 1U);
  EXPECT_NE(none.warnings[0].find("no k_scale and v_scale"), std::string::npos);
  Add("model.layers.0.self_attn.v_scale", {4}, {1});
  const AttentionScales one = Read().value();
  EXPECT_EQ(one.cache->key_scales[0], 4);
  EXPECT_NE(one.warnings.at(0).find("no k_scale, "), std::string::npos);
}

TEST_F(KvCacheTest, ZeroPointsOfSymmetricCodesAreAccepted) {
  Add("model.layers.0.self_attn.k_scale", {1}, {1});
  Add("model.layers.0.self_attn.v_scale", {1}, {1});
  tensors_["model.layers.0.self_attn.k_zero_point"] = Tensor::Zeros(DType::kF8E4M3, {1});
  tensors_["model.layers.0.self_attn.v_zero_point"] = Tensor::Zeros(DType::kI8, {1});
  EXPECT_EQ(Read().value().tensors.size(), 4U);
}

TEST_F(KvCacheTest, MalformedScalesAreRefused) {
  const float infinite = HUGE_VALF;
  struct Malformed {
    std::vector<float> values;
    Shape shape;
    std::string message;
  };
  for (const Malformed& one : std::vector<Malformed>{
           {{1, 2, 3}, {3}, "k_scale: shape [3], expected one scale or one for each of 8 heads"},
           {{}, {0}, "k_scale: shape [0]"},
           {{0}, {1}, "k_scale is 0"},
           {{-1}, {1}, "k_scale is -1"},
           {{infinite}, {1}, "k_scale is inf"},
           {{std::nanf("")}, {1}, "k_scale is nan"}}) {
    SCOPED_TRACE(one.message);
    Add("model.layers.0.self_attn.k_scale", one.values, one.shape);
    Add("model.layers.0.self_attn.v_scale", {1}, {1});
    const auto scales = Read();
    ASSERT_FALSE(scales.ok());
    EXPECT_NE(scales.status().message().find(one.message), std::string::npos)
        << scales.status().message();
  }
  tensors_["model.layers.0.self_attn.k_scale"] = Tensor::Zeros(DType::kI32, {1});
  EXPECT_FALSE(Read().ok());
}

// llm-compressor saves what lay in memory.
TEST_F(KvCacheTest, AScaleOfQueriesThatIsNotCredibleIsLeftOut) {
  Add("model.layers.0.self_attn.k_scale", {1}, {1});
  Add("model.layers.0.self_attn.v_scale", {1}, {1});
  const AttentionScales missing = Read(true).value();
  EXPECT_FALSE(missing.query.has_value());
  EXPECT_NE(missing.warnings.at(0).find("q_scale is missing"), std::string::npos);
  for (const float scale : {0.0F, -1.0F, 1e-30F, 1e30F, HUGE_VALF, std::nanf("")}) {
    Add("model.layers.0.self_attn.q_scale", {scale}, {1});
    const AttentionScales scales = Read(true).value();
    EXPECT_FALSE(scales.query.has_value()) << scale;
    EXPECT_EQ(scales.warnings.size(), 1U) << scale;
  }
  Add("model.layers.0.self_attn.q_scale", std::vector<float>(kHeads, 0.03F), {kHeads, 1, 1});
  EXPECT_EQ(Read(true).value().query->size(), static_cast<size_t>(kHeads));
}

TEST(AttentionArgs, WhatIsNotSupportedIsNamed) {
  const auto why = [](const std::string& json) {
    return WhyUnsupportedForAttention(
        ParseQuantizationArgs(ParseJson(json, "test").value(), "test").value());
  };
  EXPECT_EQ(why(R"({"num_bits": 8, "type": "float", "strategy": "tensor"})"), "");
  EXPECT_EQ(why(R"({"num_bits": 8, "type": "int", "strategy": "attn_head"})"), "");
  EXPECT_NE(why(R"({"num_bits": 4, "type": "int"})").find("4 bits"), std::string::npos);
  EXPECT_NE(why(R"({"num_bits": 8, "symmetric": false})").find("zero points"), std::string::npos);
  EXPECT_NE(why(R"({"num_bits": 8, "dynamic": true})").find("dynamic"), std::string::npos);
  EXPECT_NE(why(R"({"num_bits": 8, "strategy": "channel"})").find("channel"), std::string::npos);
}

}  // namespace
}  // namespace octavo
