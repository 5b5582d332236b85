#include "model/graph.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "model/architecture.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"({
  "architectures": ["LlamaForCausalLM"], "vocab_size": 96, "hidden_size": 64, "intermediate_size": 160,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "torch_dtype": "float16",
  "attention_bias": true})";

Result<Model> Build(const QuantizationConfig* quantization) {
  const Value config = ParseJson(kConfig, "config").value();
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config));
  OCTAVO_ASSIGN_OR_RETURN(const ModelSpec spec, architecture->parse_config(config));
  return BuildGraph(*architecture, spec, quantization);
}

TEST(Graph, LayersHaveTheFamilysNamesAndSizes) {
  const Model model = Build(nullptr).value();
  EXPECT_EQ(model.spec.head_dim, 16);
  EXPECT_EQ(model.spec.dtype, DType::kF16);
  ASSERT_EQ(model.blocks.size(), 2U);
  const Block& block = model.blocks[1];
  ASSERT_EQ(block.qkv.layers.size(), 3U);
  EXPECT_EQ(block.qkv.layers[1].name, "model.layers.1.self_attn.k_proj");
  EXPECT_EQ(block.qkv.layers[1].n, 32);
  EXPECT_TRUE(block.qkv.layers[1].has_bias);
  EXPECT_EQ(block.qkv.n(), 64 + 32 + 32);
  EXPECT_EQ(block.down.k(), 160);
  EXPECT_FALSE(block.down.layers[0].has_bias);
  EXPECT_EQ(model.modules().size(), 1U + 2 * 7 + 1);
}

TEST(Graph, EachLayerGetsItsDeclaredScheme) {
  QuantizationConfig config;
  config.config_groups.emplace_back("group_0", PresetScheme("W8A8", {"Linear"}).value());
  config.ignore = {"lm_head", "re:.*down_proj"};
  const Model model = Build(&config).value();
  EXPECT_TRUE(model.blocks[0].qkv.layers[0].quantization.weights.has_value());
  EXPECT_FALSE(model.blocks[0].down.layers[0].quantization.weights.has_value());
  EXPECT_FALSE(model.head.layers[0].quantization.weights.has_value());
}

TEST(Graph, AQuantizedEmbeddingIsDeclaredNotIgnored) {
  QuantizationConfig config;
  config.config_groups.emplace_back("group_0", PresetScheme("W8A16", {"Embedding"}).value());
  const Model model = Build(&config).value();
  ASSERT_TRUE(model.embedding_layer.quantization.weights.has_value());
  EXPECT_EQ(model.embedding_layer.quantization.weights->num_bits, 8);
  EXPECT_FALSE(model.blocks[0].qkv.layers[0].quantization.weights.has_value());
}

}  // namespace
}  // namespace octavo
