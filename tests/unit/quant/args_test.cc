#include "quant/args.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace octavo {
namespace {

Result<QuantizationArgs> Parse(std::string_view json) {
  return ParseQuantizationArgs(ParseJson(json, "test").value(), "weights");
}

TEST(Args, StrategyFollowsFromTheGroupSize) {
  EXPECT_EQ(Parse("{}")->strategy, Strategy::kTensor);
  EXPECT_EQ(Parse(R"({"group_size": 64})")->strategy, Strategy::kGroup);
  EXPECT_EQ(Parse(R"({"group_size": -1})")->strategy, Strategy::kChannel);
  EXPECT_EQ(Parse(R"({"group_size": null, "strategy": null})")->strategy, Strategy::kTensor);
  // 0 and -1 are tolerated beside an explicit strategy.
  EXPECT_EQ(Parse(R"({"group_size": 0, "strategy": "Channel"})")->strategy, Strategy::kChannel);
  EXPECT_EQ(Parse(R"({"group_size": -1, "strategy": "tensor"})")->strategy, Strategy::kTensor);
}

TEST(Args, ReadsOldSpellings) {
  EXPECT_EQ(Parse(R"({"strategy": "block", "block_structure": "128x64"})")->block_structure,
            std::make_pair(int64_t{128}, int64_t{64}));
  EXPECT_EQ(Parse(R"({"type": "FLOAT"})")->type, QuantizationType::kFloat);
  EXPECT_EQ(Parse(R"({"actorder": false})")->actorder, ActOrder::kNone);
  EXPECT_EQ(Parse(R"({"actorder": "static"})")->actorder, ActOrder::kWeight);
  EXPECT_EQ(Parse(R"({"actorder": true, "group_size": 64})")->actorder, ActOrder::kGroup);
  EXPECT_EQ(Parse(R"({"scale_dtype": "uint8"})")->scale_dtype, "torch.uint8");
  EXPECT_EQ(Parse(R"({"observer_kwargs": null})")->observer_kwargs, Value::MakeObject());
}

TEST(Args, ZeroPointDTypeIsInferredAndNullWhenSymmetric) {
  EXPECT_EQ(Parse(R"({"symmetric": false})")->zp_dtype, "torch.int8");
  EXPECT_EQ(Parse(R"({"symmetric": false, "num_bits": 16})")->zp_dtype, "torch.int16");
  EXPECT_EQ(Parse(R"({"symmetric": false, "type": "float"})")->zp_dtype, "torch.float8_e4m3fn");
  EXPECT_TRUE(ToValue(*Parse(R"({"zp_dtype": "torch.uint8"})")).Find("zp_dtype")->is_null());
}

struct Refused {
  std::string_view json;
  std::string_view message;  // part of it
};

TEST(Args, RefusesWhatBreaksARule) {
  const Refused cases[] = {
      {R"({"type": "integer"})", "weights.type: \"integer\" is unknown"},
      {R"({"strategy": "chanel"})", "did you mean \"channel\"?"},
      {R"({"actorder": "size"})", "weights.actorder: \"size\" is unknown"},
      {R"({"dynamic": "global"})", "true, false or \"local\""},
      {R"({"group_size": -2})", "weights.group_size is -2"},
      {R"({"group_size": 0})", "group_size is 0 and no strategy"},
      {R"({"strategy": "token"})", "needs dynamic: true"},
      {R"({"strategy": "group"})", "needs a positive group_size"},
      {R"({"strategy": "tensor_group", "group_size": -1})", "needs a positive group_size"},
      {R"({"strategy": "channel", "group_size": 128})", "needs strategy group"},
      {R"({"strategy": "block"})", "needs block_structure"},
      {R"({"block_structure": [128, 128]})", "needs strategy block"},
      {R"({"strategy": "block", "block_structure": [128]})", "two positive integers"},
      {R"({"strategy": "block", "block_structure": [128, 0]})", "two positive integers"},
      {R"({"strategy": "block", "block_structure": "128x"})", "two positive integers"},
      {R"({"strategy": "block", "block_structure": "128x128x128"})", "two positive integers"},
      {R"({"strategy": "block", "block_structure": "99999999999999999999x1"})", "two positive"},
      {R"({"actorder": "group", "strategy": "channel"})", "needs strategy group"},
      {R"({"dynamic": true, "strategy": "channel"})", "channel cannot be dynamic"},
      {R"({"dynamic": "local", "group_size": 16})", "needs strategy tensor_group"},
      {R"({"type": "float", "num_bits": 6})", "a float of 6 bits"},
      {R"({"type": "float", "num_bits": 4, "symmetric": false})", "asymmetric 4-bit float"},
      {R"({"num_bits": 0})", "num_bits is 0"},
      {R"({"num_bits": 9223372036854775807})", "num_bits is 1000"},
      {R"({"num_bits": "8"})", "\"num_bits\" is string, expected an integer"},
      {R"({"num_bits": 8.5})", "\"num_bits\" is number, expected an integer"},
      {R"({"scale_dtype": "torch.uint7"})", "did you mean \"uint8\"?"},
      {R"({"observer": 3})", "\"observer\" is integer"},
      {R"({"observer_kwargs": []})", "observer_kwargs is array"},
      {R"({"num_bit": 8})", "unknown key \"num_bit\" (did you mean \"num_bits\"?)"},
      {R"([])", "weights is array, expected an object"},
  };
  for (const Refused& refused : cases) {
    const auto result = Parse(refused.json);
    ASSERT_FALSE(result.ok()) << refused.json;
    EXPECT_NE(result.status().message().find(refused.message), std::string::npos)
        << refused.json << " gives: " << result.status().message();
    EXPECT_TRUE(result.status().message().starts_with("weights")) << result.status().message();
  }
}

TEST(Scheme, RefusesWhatBreaksARule) {
  const Refused cases[] = {
      {R"({"weights": null})", "s.targets is missing"},
      {R"({"targets": [1]})", "expected a list of strings"},
      {R"({"targets": [], "weight": null})", "did you mean \"weights\"?"},
      {R"({"targets": [], "input_activations": {"strategy": "channel"}})",
       "unsupported activation strategy channel"},
      {R"({"targets": [], "output_activations": {"actorder": "static"}})", "for weights only"},
      {R"({"targets": [], "format": "mixed-precision"})", "no format of a group"},
      {R"({"targets": [], "weights": {"num_bit": 8}})", "s.weights: unknown key \"num_bit\""},
  };
  for (const Refused& refused : cases) {
    const auto result = ParseQuantizationScheme(ParseJson(refused.json, "test").value(), "s");
    ASSERT_FALSE(result.ok()) << refused.json;
    EXPECT_NE(result.status().message().find(refused.message), std::string::npos)
        << refused.json << " gives: " << result.status().message();
  }
}

TEST(Scheme, FormatIsInferredFromThePreset) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"UNQUANTIZED", "dense"},          {"w8a8", "int-quantized"},
      {"W3A16", "pack-quantized"},       {"W4A16_ASYM", "pack-quantized"},
      {"W4A8", "int-quantized"},         {"W4AFP8", "int-quantized"},
      {"FP8", "float-quantized"},        {"FP8_DYNAMIC", "float-quantized"},
      {"FP8_BLOCK", "float-quantized"},  {"NVFP4", "nvfp4-pack-quantized"},
      {"MXFP4", "mxfp4-pack-quantized"}, {"MXFP8A16", "mxfp8-quantized"}};
  for (const auto& [preset, format] : cases) {
    EXPECT_EQ(InferFormat(*PresetScheme(preset, {"Linear"})), format) << preset;
  }
  QuantizationScheme weight_only_fp8 = *PresetScheme("FP8", {"Linear"});
  weight_only_fp8.input_activations.reset();
  EXPECT_EQ(InferFormat(weight_only_fp8), "naive-quantized");
}

TEST(Scheme, EveryPresetReadsBackAsItself) {
  for (const std::string& name : PresetNames()) {
    const QuantizationScheme scheme = *PresetScheme(name, {"Linear"});
    const auto again = ParseQuantizationScheme(ToValue(scheme), name);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, scheme) << name;
  }
}

TEST(Scheme, UnknownPresetNamesTheNearest) {
  const auto result = PresetScheme("W8A18", {"Linear"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kNotFound);
  EXPECT_NE(result.status().message().find("did you mean"), std::string::npos);
}

TEST(Scheme, SameQuantizationLooksAtTheComputationOnly) {
  const QuantizationScheme a = *PresetScheme("W8A8", {"Linear"});
  QuantizationScheme b = *PresetScheme("W8A8", {"re:.*q_proj"});
  b.weights->observer = "mse";
  b.weights->actorder = ActOrder::kWeight;
  b.weights->actorder_spelling = "static";
  EXPECT_TRUE(SameQuantization(a, b));
  b.weights->num_bits = 4;
  EXPECT_FALSE(SameQuantization(a, b));
}

}  // namespace
}  // namespace octavo
