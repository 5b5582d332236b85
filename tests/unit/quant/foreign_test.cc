#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "quant/config.h"
#include "quant/foreign/foreign_format.h"
#include "quant/scheme.h"
#include "support/golden_files.h"
#include "tensor/convert.h"

namespace octavo {
namespace {

Result<std::optional<QuantizationConfig>> Find(const std::string& json) {
  return FindQuantizationConfig(
      ParseJson(R"({"quantization_config": )" + json + "}", "test").value());
}

std::string SchemeOf(const QuantizationConfig& config, const std::string& module) {
  const auto scheme = ResolveScheme(config, {module, "Linear"}).value();
  return scheme ? SchemeString(*scheme) : "none";
}

TEST(ForeignConfig, Gptq) {
  const auto config = Find(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": false,
      "desc_act": true, "damp_percent": 0.01, "dynamic": {"-:.*down_proj": {}}})")
                          .value()
                          .value();
  EXPECT_EQ(SchemeOf(config, "model.layers.0.mlp.up_proj"),
            "weights: 4-bit int, group 128, asymmetric, static, columns ordered by group; "
            "input: none; output: none; format: gptq");
  EXPECT_EQ(SchemeOf(config, "model.layers.0.mlp.down_proj"), "none");
  EXPECT_EQ(SchemeOf(config, "lm_head"), "none");
  EXPECT_EQ(config.quant_method, "gptq");

  const auto listed = Find(R"({"quant_method": "gptq", "bits": 8, "group_size": -1, "lm_head": true,
      "checkpoint_format": "gptq_v2", "modules_in_block_to_quantize": [["mlp.up_proj"]]})")
                          .value()
                          .value();
  const std::string expected =
      "weights: 8-bit int, channel, symmetric, static; input: none; output: none; format: gptq_v2";
  EXPECT_EQ(SchemeOf(listed, "model.layers.0.mlp.up_proj"), expected);
  EXPECT_EQ(SchemeOf(listed, "lm_head"), expected);
  EXPECT_EQ(SchemeOf(listed, "model.layers.0.mlp.down_proj"), "none");
}

TEST(ForeignConfig, AwqLeavesOutNamesThatHoldAnEntry) {
  const auto config = Find(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64,
      "version": "GEMM", "modules_to_not_convert": ["self_attn.v"]})")
                          .value()
                          .value();
  EXPECT_EQ(SchemeOf(config, "model.layers.0.self_attn.q_proj"),
            "weights: 4-bit int, group 64, asymmetric, static; input: none; output: none; "
            "format: awq");
  EXPECT_EQ(SchemeOf(config, "model.layers.0.self_attn.v_proj"), "none");
}

TEST(ForeignConfig, Fp8) {
  const auto config = Find(R"({"quant_method": "fp8", "weight_block_size": [128, 64],
      "modules_to_not_convert": ["mlp.gate", "model.layers.1"]})")
                          .value()
                          .value();
  EXPECT_EQ(SchemeOf(config, "model.layers.0.mlp.gate_proj"),
            "weights: 8-bit float, block 128x64, symmetric, static; input: 8-bit float, group 64, "
            "symmetric, dynamic; output: none; format: fp8");
  EXPECT_EQ(SchemeOf(config, "model.layers.0.mlp.gate"), "none");
  EXPECT_EQ(SchemeOf(config, "model.layers.1.mlp.up_proj"), "none");
  EXPECT_NE(SchemeOf(config, "model.layers.10.mlp.up_proj"), "none");
  EXPECT_EQ(SchemeOf(config, "lm_head"), "none");
  const auto dynamic = Find(R"({"quant_method": "fp8"})").value().value();
  EXPECT_EQ(SchemeOf(dynamic, "x"),
            "weights: 8-bit float, tensor, symmetric, static; input: 8-bit float, token, "
            "symmetric, dynamic; output: none; format: fp8");
}

TEST(ForeignConfig, RefusesWhatItCannotHonour) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"quant_method": "gptq", "group_size": 128})", "quantization_config: \"bits\""},
      {R"({"quant_method": "gptq", "bits": "4", "group_size": 128})", "\"bits\" is string"},
      {R"({"quant_method": "gptq", "bits": 5, "group_size": 128})", "bits is 5, expected 2, 3"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 0})", "group_size is 0"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"})",
       "checkpoint_format is \"marlin\""},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "is_marlin_format": true})",
       "checkpoint_format is marlin"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"+:.*": {"bits": 8}}})",
       "settings of single layers"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128,
           "modules_in_block_to_quantize": ["a"]})",
       "lists of lists"},
      {R"({"quant_method": "awq", "bits": 3, "group_size": 128})", "bits is 3, expected 4"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"})",
       "version is gemv"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "backend": "llm-awq"})", "llm-awq"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": 3})",
       "modules_to_not_convert"},
      {R"({"quant_method": "fp8", "fmt": "e5m2"})", "fmt is \"e5m2\""},
      {R"({"quant_method": "fp8", "weight_block_size": 128})", "weight_block_size: expected"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", "weight_block_size"},
      {R"({"quant_method": "fp8", "activation_scheme": "token"})",
       "activation_scheme is \"token\""},
      {R"({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": [128, 128]})",
       "activation_scheme static with weight_block_size"},
  };
  for (const auto& [json, message] : cases) {
    const auto result = Find(json);
    ASSERT_FALSE(result.ok()) << json;
    EXPECT_NE(result.status().message().find(message), std::string::npos)
        << result.status().message();
  }
}

// A layer and tensors of its own, which tests spoil.
struct TestLayer {
  LinearLayer layer;
  LayerTensors tensors;

  Status Prepare() const {
    LayerViews views;
    for (const auto& [suffix, tensor] : tensors) views[suffix] = tensor.view();
    OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
    OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, layer, views));
    const testing::TestContext context(1);
    auto prepared = scheme->prepare({&layer, 1}, {&views, 1}, {}, context.context);
    return prepared.ok() ? OkStatus() : prepared.status();
  }
  Result<QuantizedWeight> Unpack() const {
    LayerViews views;
    for (const auto& [suffix, tensor] : tensors) views[suffix] = tensor.view();
    return SelectScheme(layer).value()->unpack(layer, views);
  }
};

TestLayer MakeLayer(const std::string& config, int64_t n, int64_t k) {
  TestLayer made;
  made.layer = {.name = "x", .n = n, .k = k, .quantization = {}};
  made.layer.quantization =
      ResolveScheme(Find(config).value().value(), {"x", "Linear"}).value().value();
  return made;
}

Tensor Scales(const Shape& shape, DType dtype = DType::kF16) {
  return FromFloat(std::vector<float>(static_cast<size_t>(Elements(shape)), 0.5F), dtype, shape)
      .value();
}

constexpr int64_t kN = 16;
constexpr int64_t kK = 32;

TestLayer MakeGptq(bool symmetric = false) {
  TestLayer made = MakeLayer(std::string(R"({"quant_method": "gptq", "bits": 4, "group_size": 16,
      "desc_act": true, "sym": )") +
                                 (symmetric ? "true}" : "false}"),
                             kN, kK);
  made.tensors["qweight"] = Tensor::Zeros(DType::kI32, {kK / 8, kN});
  made.tensors["qzeros"] = Tensor::Zeros(DType::kI32, {2, kN / 8});
  made.tensors["scales"] = Scales({2, kN});
  Tensor& groups = made.tensors["g_idx"] = Tensor(DType::kI32, {kK});
  for (int64_t i = 0; i < kK; ++i)
    groups.mutable_data<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i % 2);
  return made;
}

TestLayer MakeAwq() {
  TestLayer made = MakeLayer(R"({"quant_method": "awq", "bits": 4, "group_size": 16})", kN, kK);
  made.tensors["qweight"] = Tensor::Zeros(DType::kI32, {kK, kN / 8});
  made.tensors["qzeros"] = Tensor::Zeros(DType::kI32, {2, kN / 8});
  made.tensors["scales"] = Scales({2, kN});
  return made;
}

TestLayer MakeFp8() {
  TestLayer made = MakeLayer(R"({"quant_method": "fp8", "activation_scheme": "static"})", kN, kK);
  made.tensors["weight"] = Tensor::Zeros(DType::kF8E4M3, {kN, kK});
  made.tensors["weight_scale_inv"] = Scales({1}, DType::kF32);
  made.tensors["activation_scale"] = Scales({1}, DType::kF32);
  return made;
}

TEST(ForeignScheme, MalformedTensorsAreRefused) {
  const auto with = [](TestLayer made, const std::function<void(LayerTensors&)>& spoil) {
    EXPECT_TRUE(made.Prepare().ok()) << made.Prepare().ToString();
    spoil(made.tensors);
    return made;
  };
  const std::pair<TestLayer, const char*> cases[] = {
      {with(MakeGptq(),
            [](auto& t) {
              t["qweight"] = Tensor::Zeros(DType::kI32, {kK, kN});
            }),
       "x.qweight is I32 [32, 16], expected I32 [4, 16]"},
      {with(MakeGptq(),
            [](auto& t) {
              t["qweight"] = Tensor::Zeros(DType::kI8, {kK / 8, kN});
            }),
       "x.qweight is I8"},
      {with(MakeGptq(), [](auto& t) { t.erase("qzeros"); }), "x.qzeros is missing"},
      {with(MakeGptq(), [](auto& t) { t.erase("scales"); }), "x.scales is missing"},
      {with(MakeGptq(), [](auto& t) { t.erase("g_idx"); }), "x.g_idx is missing"},
      {with(MakeGptq(), [](auto& t) { t["g_idx"] = Tensor::Zeros(DType::kI32, {kK + 1}); }),
       "x.g_idx is I32 [33], expected I32 [32]"},
      {with(MakeGptq(), [](auto& t) { t["g_idx"].template mutable_data<int32_t>()[3] = 2; }),
       "x.g_idx holds 2, but there are 2 groups"},
      {with(MakeGptq(), [](auto& t) { t["g_idx"].template mutable_data<int32_t>()[3] = -1; }),
       "x.g_idx holds -1"},
      {with(MakeGptq(), [](auto& t) { t["g_idx"].template mutable_data<int32_t>()[3] = 0; }),
       "x.g_idx: group 0 has 17 columns, expected 16"},
      {with(MakeGptq(),
            [](auto& t) {
              t["scales"] = Scales({3, kN});
            }),
       "x.scales is F16 [3, 16]"},
      {with(MakeGptq(), [](auto& t) { t["scales"].template mutable_data<uint16_t>()[5] = 0x7E00; }),
       "x.scales holds NaN or Inf"},
      {with(MakeGptq(),
            [](auto& t) {
              t["weight"] = Scales({kN, kK});
            }),
       "x.weight (F16 [16, 32]) is in the checkpoint"},
      {with(MakeAwq(),
            [](auto& t) {
              t["qweight"] = Tensor::Zeros(DType::kI32, {kK / 8, kN});
            }),
       "x.qweight is I32 [4, 16], expected I32 [32, 2]"},
      {with(MakeAwq(), [](auto& t) { t.erase("qzeros"); }), "x.qzeros is missing"},
      {with(MakeAwq(),
            [](auto& t) {
              t["scales"] = Scales({kN, 2});
            }),
       "x.scales is F16 [16, 2]"},
      {with(MakeFp8(), [](auto& t) { t.erase("weight_scale_inv"); }),
       "x.weight_scale is missing, or weight_scale_inv in its place"},
      {with(MakeFp8(), [](auto& t) { t["weight_scale"] = Scales({1}, DType::kF32); }),
       "x has both weight_scale and weight_scale_inv"},
      {with(MakeFp8(), [](auto& t) { t.erase("activation_scale"); }), "x.input_scale is missing"},
      {with(MakeFp8(),
            [](auto& t) {
              t["weight_scale_inv"] = Scales({2, 2}, DType::kF32);
            }),
       "x.weight_scale_inv is F32 [2, 2], expected"},
      {with(MakeFp8(), [](auto& t) { t["activation_scale"] = Tensor::Zeros(DType::kF32, {1}); }),
       "x.input_scale is 0"},
      {with(MakeFp8(), [](auto& t) { t["weight"].bytes()[7] = static_cast<std::byte>(0x7F); }),
       "x.weight holds NaN"},
  };
  for (const auto& [made, message] : cases) {
    const Status status = made.Prepare();
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
  }
}

TEST(ForeignScheme, AGroupSizeThatDoesNotDivideIsRefused) {
  TestLayer made = MakeGptq();
  made.layer.quantization.weights->group_size = 24;
  EXPECT_FALSE(made.Prepare().ok());
}

TEST(ForeignScheme, SymmetricGptqHasItsZeroPointsInTheMiddle) {
  TestLayer made = MakeGptq(/*symmetric=*/true);
  const Status status = made.Prepare();
  EXPECT_NE(status.message().find("x.qzeros holds the zero point 1, but the config says symmetric"),
            std::string::npos)
      << status.message();
  for (int32_t& word : made.tensors["qzeros"].mutable_data<int32_t>()) word = 0x77777777;
  ASSERT_OK(made.Prepare());
}

// Stored less one, a zero point of 0 is the largest code.
TEST(ForeignScheme, GptqZeroPointsWrapAround) {
  TestLayer made = MakeGptq();
  for (int32_t& word : made.tensors["qzeros"].mutable_data<int32_t>()) word = -1;
  const auto weight = made.Unpack();
  ASSERT_OK(weight);
  EXPECT_EQ(weight->zero_point.data<int8_t>()[0], -8);
}

// AutoGPTQ's own loop for three bits (qlinear_cuda.pack): 32 codes in 3 words.
TEST(ForeignScheme, ThreeBitCodesCrossWords) {
  std::vector<uint32_t> codes(32);
  for (uint32_t i = 0; i < 32; ++i) codes[i] = (i * 5 + 3) % 8;
  uint32_t words[3] = {};
  for (uint32_t j = 0; j < 10; ++j) words[0] |= codes[j] << (3 * j);
  words[0] |= codes[10] << 30;
  words[1] |= (codes[10] >> 2) & 1U;
  for (uint32_t j = 0; j < 10; ++j) words[1] |= codes[11 + j] << (3 * j + 1);
  words[1] |= codes[21] << 31;
  words[2] |= (codes[21] >> 1) & 3U;
  for (uint32_t j = 0; j < 10; ++j) words[2] |= codes[22 + j] << (3 * j + 2);

  TestLayer made =
      MakeLayer(R"({"quant_method": "gptq", "bits": 3, "group_size": -1, "sym": false})", 32, 32);
  Tensor& qweight = made.tensors["qweight"] = Tensor(DType::kI32, {3, 32});
  for (size_t i = 0; i < 96; ++i)
    qweight.mutable_data<int32_t>()[i] = static_cast<int32_t>(words[i / 32]);
  Tensor& qzeros = made.tensors["qzeros"] = Tensor(DType::kI32, {1, 3});
  for (size_t i = 0; i < 3; ++i) qzeros.mutable_data<int32_t>()[i] = static_cast<int32_t>(words[i]);
  made.tensors["scales"] = Scales({1, 32});
  ASSERT_OK(made.Prepare());
  const auto weight = made.Unpack();
  ASSERT_OK(weight);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(weight->codes.data<int8_t>()[i], static_cast<int>(codes[i]) - 4) << i;
    EXPECT_EQ(weight->zero_point.data<int8_t>()[i], static_cast<int>(codes[i] + 1) % 8 - 4) << i;
  }
}

}  // namespace
}  // namespace octavo
