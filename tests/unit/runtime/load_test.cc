// Loading: what a checkpoint may get wrong, and how that is said.
#include "runtime/load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "io/checkpoint_writer.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;
using testing::TestContext;
using testing::TestData;

// A copy of a W8A8 checkpoint whose config and tensors a test may damage.
class LoadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto source = SafetensorsFile::Open(TestData("checkpoints/odd-w8a8/model.safetensors"));
    ASSERT_OK(source);
    for (const auto& [name, view] : source->tensors()) tensors_[name] = Tensor::CopyOf(view);
    const std::string config = TestData("checkpoints/odd-w8a8/config.json").string();
    config_ = ParseJson(ReadFile(config).value(), config).value();
  }

  Status Load() {
    std::vector<std::pair<std::string, TensorView>> views;
    for (const auto& [name, tensor] : tensors_) views.emplace_back(name, tensor.view());
    EXPECT_TRUE(WriteSafetensors(folder_.path() / "model.safetensors", views).ok());
    EXPECT_TRUE(WriteFileAtomically(folder_.path() / "config.json", WriteJson(config_)).ok());
    const auto loaded = LoadModel(folder_.path(), {}, context_.context);
    return loaded.ok() ? OkStatus() : loaded.status();
  }

  Value& Group() {
    return *config_.Find("quantization_config")->Find("config_groups")->Find("group_0");
  }

  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [name, tensor] : tensors_) keys.push_back(name);
    return keys;
  }

  void ExpectError(const std::vector<std::string>& parts) {
    const Status status = Load();
    ASSERT_FALSE(status.ok());
    for (const std::string& part : parts) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << part << " is not in: " << status.message();
    }
  }

  TestContext context_{1};
  TemporaryFolder folder_;
  std::map<std::string, Tensor> tensors_;
  Value config_;
};

constexpr char kQ[] = "model.layers.0.self_attn.q_proj";

TEST_F(LoadTest, TheCopyItselfLoads) {
  ASSERT_OK(Load());
}

TEST_F(LoadTest, AMissingScaleIsNamed) {
  tensors_.erase(std::string(kQ) + ".weight_scale");
  ExpectError({kQ, "weight_scale is missing", "W8A8 INT8"});
}

TEST_F(LoadTest, AScaleOfAnotherShapeIsNamedWithWhatIsExpected) {
  tensors_[std::string(kQ) + ".weight_scale"] = Tensor::Zeros(DType::kBF16, {7, 1});
  ExpectError({kQ, "weight_scale is BF16 [7, 1]", "expected BF16", "[192, 1]"});
}

TEST_F(LoadTest, AScaleThatIsNotFiniteIsRefused) {
  tensors_[std::string(kQ) + ".weight_scale"].mutable_data<uint16_t>()[3] = 0x7FC0;
  ExpectError({kQ, "weight_scale holds nan"});
}

TEST_F(LoadTest, ATensorThatNobodyWouldUseIsAnError) {
  tensors_[std::string(kQ) + ".input_scale"] = Tensor::Zeros(DType::kBF16, {1});
  ExpectError({kQ, "input_scale", "does not use it"});
}

TEST_F(LoadTest, ZerosForSymmetricZeroPointsAreToleratedOthersNot) {
  Tensor& zeros = tensors_[std::string(kQ) + ".weight_zero_point"];
  zeros = Tensor::Zeros(DType::kI8, {192, 1});
  ASSERT_OK(Load());
  zeros.mutable_data<int8_t>()[0] = 1;
  ExpectError({"weight_zero_point is not zero"});
}

TEST_F(LoadTest, FloatWeightsUnderAQuantizedConfigAreRefused) {
  tensors_[std::string(kQ) + ".weight"] = Tensor::Zeros(DType::kBF16, {192, 192});
  ExpectError({kQ, "weight is BF16 [192, 192], expected I8"});
}

TEST_F(LoadTest, ASchemeThatNobodyComputesNamesTheNearest) {
  Group().Find("weights")->Set("strategy", "block");
  Group().Find("weights")->Set("block_structure", ParseJson("[64, 64]", "test").value());
  ExpectError({kQ, "no scheme computes", "nearest is W8A8 INT8",
               "weights: static block, not static channel", "int-quantized"});
}

TEST_F(LoadTest, GroupsThatDoNotDivideTheColumnsAreNamed) {
  Group().Find("weights")->Set("strategy", "group");
  Group().Find("weights")->Set("group_size", 100);
  ExpectError({kQ, "group size 100 does not divide the 192 columns"});
}

TEST_F(LoadTest, AKvCacheSchemeThatIsNotSupportedIsNamed) {
  Value& config = *config_.Find("quantization_config");
  config.Set("kv_cache_scheme", *Group().Find("weights"));
  ExpectError({"kv_cache_scheme", "strategy channel is not supported, tensor and attn_head are"});
  config.Set("kv_cache_scheme", ParseJson(R"({"num_bits": 8, "dynamic": true})", "test").value());
  ExpectError({"kv_cache_scheme", "found while the model runs (dynamic)"});
}

TEST_F(LoadTest, AKvCacheSchemeWithoutScalesTakesOne) {
  Value& config = *config_.Find("quantization_config");
  config.Set("kv_cache_scheme", ParseJson(R"({"num_bits": 8, "type": "float"})", "test").value());
  ASSERT_OK(Load());
  tensors_["model.layers.0.self_attn.k_scale"] = Tensor::Zeros(DType::kBF16, {1});
  ExpectError({"model.layers.0.self_attn.k_scale is 0"});
}

// Releases up to 0.5 declare the cache as the output of the projections.
TEST_F(LoadTest, TheCacheAsOutputOfTheProjectionsIsRead) {
  const Value cache = ParseJson(R"({"num_bits": 8, "type": "float"})", "test").value();
  Value& config = *config_.Find("quantization_config");
  Value projections = Group();
  projections.Set("targets", ParseJson(R"(["re:.*[kv]_proj$"])", "test").value());
  projections.Set("output_activations", cache);
  config.Find("config_groups")->Set("group_1", projections);
  ExpectError({"k_proj", "output activations are quantized"});
  config.Set("kv_cache_scheme", cache);
  for (const std::string layer : {"model.layers.0.self_attn", "model.layers.1.self_attn"}) {
    for (const std::string name : {".k_proj", ".v_proj"})
      tensors_[layer + name + ".output_scale"] =
          FromFloat(std::vector<float>{0.5F}, DType::kBF16, {1}).value();
  }
  ASSERT_OK(Load());
}

TEST_F(LoadTest, TransformsThatCannotBeAppliedAreNamed) {
  const auto use = [&](const std::string& type, const std::string& location,
                       const std::string& target) {
    config_.Find("quantization_config")
        ->Set("transform_config", ParseJson(R"({"config_groups": {"R9": {"type": ")" + type +
                                                R"(", "apply": [{"location": ")" + location +
                                                R"(", "targets": [")" + target + R"("]}]}}})",
                                            "test")
                                      .value());
  };
  use("hadamard", "input", "re:.*down_proj$");
  ExpectError({"R9_input.weight is missing", "[320, 320]", "power of two"});
  use("hadamard", "q_attn", "re:.*self_attn$");
  ASSERT_OK(Load());
  use("hadamard", "q_attn", "LlamaAttention");
  ASSERT_OK(Load());
  use("hadamard", "v_cache", "re:.*self_attn$");
  ExpectError({"transform_config.config_groups.R9.apply[0].location", "v_cache"});
  use("hadamard", "output", "re:.*embed_tokens$");
  ExpectError({"R9 at output of model.embed_tokens is not supported"});
  use("hadamard", "input", "re:.*self_attn$");
  ExpectError({"R9 at input matches no module"});
}

TEST_F(LoadTest, UnknownKeysOfAGroupAreNamed) {
  Group().Find("weights")->Set("num_bit", 8);
  ExpectError({"num_bit", "num_bits"});
}

TEST_F(LoadTest, ConfigsThatMakeNoSenseAreNamed) {
  const std::map<std::string, std::pair<Value, std::string>> cases = {
      {"hidden_size", {Value(-1), "hidden_size"}},
      {"vocab_size", {Value("many"), "vocab_size"}},
      {"num_hidden_layers", {Value(int64_t{1} << 40), "num_hidden_layers"}},
      {"num_attention_heads", {Value(0), "num_attention_heads"}},
      {"num_key_value_heads", {Value(2), "num_key_value_heads"}},
      {"hidden_act", {Value("gelu_fast"), "gelu_fast"}},
      {"torch_dtype", {Value("int4"), "int4"}},
      {"architectures", {Value::MakeArray(), "architectures"}},
  };
  const Value original = config_;
  for (const auto& [key, change] : cases) {
    SCOPED_TRACE(key);
    config_ = original;
    config_.Erase("dtype");
    config_.Set(key, change.first);
    ExpectError({change.second});
  }
  config_ = original;
  Value rope = Value::MakeObject();
  rope.Set("rope_type", "ntk");
  config_.Set("rope_scaling", rope);
  ExpectError({"ntk", "not supported"});
  config_ = original;
  config_.Set("architectures", Value::Array{Value("LlamaForCausalM")});
  ExpectError({"LlamaForCausalM", "did you mean", "LlamaForCausalLM"});
}

// Static scales that differ within q, k, v: each shard quantizes the input with its own.
TEST_F(LoadTest, ShardsWithInputScalesOfTheirOwnRunAsDeclared) {
  Value& input = *Group().Find("input_activations");
  input.Set("dynamic", false);
  input.Set("strategy", "tensor");
  for (const std::string& name : Keys()) {
    if (!name.ends_with(".weight_scale")) continue;
    const std::string layer = name.substr(0, name.size() - std::string("weight_scale").size());
    const float scale = layer.ends_with("v_proj.") ? 0.5F : 0.25F;
    tensors_[layer + "input_scale"] = FromFloat({&scale, 1}, DType::kBF16, {1}).value();
  }
  ASSERT_OK(Load());
  const auto loaded = LoadModel(folder_.path(), {}, context_.context);
  const Block& block = (*loaded)->model().blocks[0];
  ASSERT_EQ(block.qkv.parts.size(), 2U) << "q with k, and v";
  EXPECT_EQ(block.qkv.part_columns[1], block.qkv.layers[0].n + block.qkv.layers[1].n);
  EXPECT_EQ(block.gate_up.parts.size(), 1U);
  const std::vector<float> x(static_cast<size_t>(block.qkv.k()), 1.0F);
  for (size_t part = 0; part < 2; ++part) {
    QuantizedRows rows;
    block.qkv.parts[part]->QuantizeRows({x.data(), 1, std::ssize(x), std::ssize(x)}, &rows,
                                        context_.context);
    EXPECT_EQ(rows.codes[0], part == 0 ? 4 : 2);
  }
}

TEST_F(LoadTest, AHugeModelThatIsNotThereIsNotAllocated) {
  config_.Set("num_hidden_layers", 2000);
  ExpectError({"model.layers.2"});
}

}  // namespace
}  // namespace octavo
