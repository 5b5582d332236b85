#include "quant/config.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = fs::path(OCTAVO_TEST_DATA) / "schemes" / "configs";

Value ReadConfig(const std::string& name) {
  const fs::path path = kConfigs / (name + ".json");
  return ParseJson(ReadFile(path).value(), path.string()).value();
}

QuantizationConfig Parse(std::string_view json) {
  return ParseQuantizationConfig(ParseJson(json, "test").value(), "quantization_config").value();
}

// Of the scheme that resolves; "none" when not quantized.
std::string WeightsOf(const QuantizationConfig& config, const ModuleName& module) {
  const auto scheme = ResolveScheme(config, module).value();
  return scheme && scheme->weights ? scheme->weights->ToString() : "none";
}

class RoundTrip : public testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, WritesWhatTheLibraryWrote) {
  const Value json = ReadConfig(GetParam());
  const Value& stored = *json.Find("quantization_config");
  const auto config = ParseQuantizationConfig(stored, "quantization_config");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const JsonStyle style{.indent = 2, .sort_keys = true};
  EXPECT_EQ(WriteJson(ToValue(*config), style), WriteJson(stored, style));
  EXPECT_EQ(CheckpointFormat(*config), config->format);
  for (auto [name, scheme] : config->config_groups) {
    const auto format = std::exchange(scheme.format, std::nullopt);
    EXPECT_EQ(InferFormat(scheme), format) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, RoundTrip,
                         testing::Values("llama-w8a8", "llama-gptq-w4a16", "llama-mixed",
                                         "llama-fp8-block", "llama-nvfp4", "llama-mxfp8",
                                         "llama-fp8-dynamic-kv", "llama-attention-fp8",
                                         "llama-spin-online", "llama-w4a16-asym"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Config, PresetsAreWhatTheLibrarySaves) {
  const std::pair<std::string, std::string> cases[] = {{"llama-w8a8", "W8A8"},
                                                       {"llama-fp8-block", "FP8_BLOCK"},
                                                       {"llama-nvfp4", "NVFP4"},
                                                       {"llama-mxfp8", "MXFP8"},
                                                       {"llama-fp8-dynamic-kv", "FP8_DYNAMIC"},
                                                       {"llama-w4a16-asym", "W4A16_ASYM"}};
  for (const auto& [name, preset] : cases) {
    const auto config = FindQuantizationConfig(ReadConfig(name)).value().value();
    QuantizationScheme scheme = PresetScheme(preset, {"Linear"}).value();
    FillDefaultObservers(&scheme);
    scheme.format = InferFormat(scheme);
    EXPECT_EQ(scheme, config.config_groups[0].second) << name;
  }
}

TEST(Config, ReadsOldReleases) {
  const auto flat = FindQuantizationConfig(ReadConfig("old-compression-config")).value().value();
  EXPECT_EQ(WeightsOf(flat, {"x", "Linear"}), "4-bit int, group 128, symmetric, static");
  const auto order = FindQuantizationConfig(ReadConfig("old-actorder-group")).value().value();
  EXPECT_EQ(order.config_groups[0].second.weights->actorder, ActOrder::kGroup);
  const auto packed = FindQuantizationConfig(ReadConfig("old-zero-point-unpacked")).value().value();
  EXPECT_EQ(ResolveScheme(packed, {"x", "Linear"}).value()->format, "pack-quantized");

  // Up to 0.3: nested, and under another method's name.
  const Value nested = ParseJson(R"({"compression_config": {"quant_method": "sparseml",
      "sparsity_config": {"format": "dense"}, "quantization_config": {"config_groups":
      {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "strategy": "channel"},
       "input_activations": {"strategy": "token", "dynamic": true}}}, "ignore": null}}})",
                                 "test")
                           .value();
  const auto config = FindQuantizationConfig(nested).value().value();
  EXPECT_EQ(ResolveScheme(config, {"x", "Linear"}).value()->format, "int-quantized");
}

TEST(Config, FindsTheTextConfigOfMultimodalModels) {
  const Value json = ParseJson(
                         R"({"quantization_config": null, "text_config": {"quantization_config":
                         {"config_groups": {"W8A8": ["Linear"]}}}})",
                         "test")
                         .value();
  const auto config = FindQuantizationConfig(json).value().value();
  EXPECT_EQ(WeightsOf(config, {"x", "Linear"}), "8-bit int, channel, symmetric, static");
  EXPECT_FALSE(FindQuantizationConfig(Value::MakeObject()).value().has_value());
}

TEST(Config, PresetFormOfOldReleases) {
  EXPECT_EQ(WeightsOf(Parse(R"({"config_groups": {"w8a16": ["Linear"]}, "version": "0.15.1"})"),
                      {"x", "Linear"}),
            "8-bit int, channel, symmetric, static");
  EXPECT_EQ(WeightsOf(Parse(R"({"config_groups": {"W8A16": ["Linear"]}, "version": "0.16.0"})"),
                      {"x", "Linear"}),
            "8-bit int, group 128, symmetric, static");
}

TEST(Config, ScaleDTypeFollowsFromTheFormat) {
  const auto config = Parse(R"({"format": "nvfp4-pack-quantized", "config_groups": {"g":
      {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "group_size": 16,
       "strategy": "tensor_group"}}}})");
  EXPECT_EQ(config.config_groups[0].second.weights->scale_dtype, "torch.float8_e4m3fn");
}

TEST(Config, RefusesWhatItCannotHonour) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"quantization_config": {"quant_method": "modelopt"}})",
       "\"modelopt\", which is not read here; known: compressed-tensors, gptq"},
      {R"({"quantization_config": {"quant_method": 7}})", "quant_method is integer"},
      {R"({"quantization_config": []})", "quantization_config is array"},
      {R"({"quantization_config": {}})", "quantization_config.config_groups is missing"},
      {R"({"quantization_config": {"config_groups": []}})", "config_groups is array"},
      {R"({"quantization_config": {"config_groups": {"W8A9": ["Linear"]}}})",
       "config_groups.W8A9: \"W8A9\" is no preset"},
      {R"({"quantization_config": {"config_groups": {"g": {"targets": ["Linear"], "weights":
          {"num_bits": 4, "group_size": 0}}}}})",
       "quantization_config.config_groups.g.weights: group_size is 0"},
      {R"({"quantization_config": {"config_groups": {}, "sparsity_config":
          {"format": "sparse-24-bitmask"}}})",
       "sparse-24-bitmask"},
      {R"({"quantization_config": {"config_groups": {}, "sparsity_config":
          {"format": "sparse-bitmask", "targets": ["Linear"]}}})",
       "sparse weights"},
      {R"({"quantization_config": {"format": "marlin-24", "config_groups": {"g":
          {"targets": ["Linear"], "weights": {"num_bits": 4}}}}})",
       "config_groups.g: format marlin-24 stores sparse weights"},
      {R"({"quantization_config": {"config_groups": {}, "format": 1}})", "\"format\" is integer"},
      {R"({"quantization_config": {"config_groups": {}, "ignore": {"a": 1}}})", "ignore is object"},
      {R"({"quantization_config": {"config_groups": {}, "kv_cache_scheme": {"bits": 8}}})",
       "kv_cache_scheme: unknown key \"bits\""},
      {R"({"quantization_config": {"config_groups": {}, "transform_config": 3}})",
       "transform_config is integer"},
  };
  for (const auto& [text, message] : cases) {
    const auto result = FindQuantizationConfig(ParseJson(text, "test").value());
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_NE(result.status().message().find(message), std::string::npos)
        << result.status().message();
  }
}

TEST(Config, SparsityOfNoModuleIsIgnored) {
  for (const char* sparsity : {"null", "{}", R"({"format": "dense", "targets": ["Linear"]})",
                               R"({"format": "sparse-24-bitmask", "targets": []})"}) {
    const std::string text = R"({"config_groups": {}, "sparsity_config": )";
    EXPECT_TRUE(ParseQuantizationConfig(ParseJson(text + sparsity + "}", "test").value(), "q").ok())
        << sparsity;
  }
}

// Test vector T24.
TEST(Resolve, NameBeatsRegexBeatsClass) {
  const auto config = Parse(R"({"config_groups": {
      "A": {"targets": ["Linear"], "weights": {"num_bits": 2}},
      "B": {"targets": ["re:.*down_proj"], "weights": {"num_bits": 3}},
      "C": {"targets": ["model.layers.0.mlp.down_proj"], "weights": {"num_bits": 4}}},
      "ignore": ["lm_head"]})");
  EXPECT_EQ(WeightsOf(config, {"model.layers.0.mlp.down_proj", "Linear"}).substr(0, 1), "4");
  EXPECT_EQ(WeightsOf(config, {"model.layers.1.mlp.down_proj", "Linear"}).substr(0, 1), "3");
  EXPECT_EQ(WeightsOf(config, {"model.layers.1.mlp.up_proj", "Linear"}).substr(0, 1), "2");
  EXPECT_EQ(WeightsOf(config, {"lm_head", "Linear"}), "none");
  EXPECT_EQ(WeightsOf(config, {"model.layers.0.mlp.down_proj", "LlamaRMSNorm"}), "none");
}

TEST(Resolve, TiesGoToTheSmallestPatternAndTheLastGroup) {
  const auto config = Parse(R"({"config_groups": {
      "A": {"targets": ["re:.*up_proj"], "weights": {"num_bits": 2}},
      "B": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 3}},
      "C": {"targets": ["Linear"], "weights": {"num_bits": 4}},
      "D": {"targets": ["Linear"], "weights": {"num_bits": 5}}}})");
  EXPECT_EQ(WeightsOf(config, {"mlp.up_proj", "Linear"}).substr(0, 1), "3");
  EXPECT_EQ(WeightsOf(config, {"q_proj", "Linear"}).substr(0, 1), "5");
}

TEST(Resolve, AttentionSchemesHaveInputsOnly) {
  const auto config = Parse(R"({"config_groups": {"A": {"targets": ["LlamaAttention"],
      "input_activations": {"type": "float"}}}})");
  EXPECT_TRUE(ResolveScheme(config, {"layers.0.self_attn", "LlamaAttention"}).value().has_value());
  EXPECT_FALSE(ResolveScheme(config, {"layers.0.self_attn.q_proj", "Linear"}).value().has_value());
  const auto weights = Parse(R"({"config_groups": {"A": {"targets": ["re:.*self_attn"],
      "weights": {}}}})");
  EXPECT_FALSE(ResolveScheme(weights, {"layers.0.self_attn", "LlamaAttention"}).ok());
}

TEST(Resolve, FusedShardsNeedOneScheme) {
  const auto config = Parse(R"({"config_groups": {"W8A8": ["Linear"]}, "ignore": ["a.k_proj"]})");
  const auto resolver = SchemeResolver::Make(config).value();
  const std::vector<ModuleName> split = {
      {"a.q_proj", "Linear"}, {"a.k_proj", "Linear"}, {"a.v_proj", "Linear"}};
  const auto result = resolver.ResolveFused(split);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("a.q_proj and a.k_proj"), std::string::npos)
      << result.status().message();
  const std::vector<ModuleName> whole = {{"b.q_proj", "Linear"}, {"b.k_proj", "Linear"}};
  EXPECT_TRUE(resolver.ResolveFused(whole).value().has_value());
}

TEST(Resolve, NamesPatternsThatMatchNothing) {
  const auto config = Parse(R"({"config_groups": {"W8A8": ["Linear", "re:.*expert"]},
      "ignore": ["lm_head", "model.layers.*"]})");
  const auto unmatched =
      FindUnmatchedPatterns(config, {{"lm_head", "Linear"}, {"model.layers.0.q_proj", "Linear"}})
          .value();
  EXPECT_EQ(unmatched.targets, std::vector<std::string>{"re:.*expert"});
  EXPECT_EQ(unmatched.ignore, std::vector<std::string>{"model.layers.*"});
}

TEST(Resolve, ABrokenPatternIsAnError) {
  const auto config = Parse(R"({"config_groups": {"W8A8": ["re:["]}})");
  EXPECT_FALSE(ResolveScheme(config, {"a", "Linear"}).ok());
}

}  // namespace
}  // namespace octavo
