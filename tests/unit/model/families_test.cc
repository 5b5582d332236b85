// What the config.json of each family says of its switches.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "model/architecture.h"
#include "model/graph.h"

namespace octavo {
namespace {

Result<ModelSpec> Read(const std::string& class_name, const std::string& members = "") {
  const std::string text = R"({"architectures": [")" + class_name + R"("], "vocab_size": 96,
      "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3,
      "num_attention_heads": 4)" +
                           members + "}";
  const Value config = ParseJson(text, "config").value();
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config));
  return architecture->parse_config(config);
}

// tests/parity/arch_test.cc holds every folder to transformers.
TEST(Architectures, EachHasAGolden) {
  std::set<std::string> with_golden;
  for (const auto& folder : std::filesystem::directory_iterator(OCTAVO_TEST_DATA "/arch")) {
    const std::string path = folder.path() / "config.json";
    const Value config = ParseJson(ReadFile(path).value(), path).value();
    with_golden.insert(config.Find("architectures")->as_array()[0].as_string());
  }
  for (const Architecture* architecture : Architectures()) {
    EXPECT_FALSE(architecture->summary.empty());
    for (const std::string& name : architecture->class_names)
      EXPECT_TRUE(with_golden.contains(name)) << name;
  }
}

using Windows = std::vector<int64_t>;

TEST(Mistral, SlidesUnlessTheWindowIsNull) {
  const auto windows = [](const std::string& members) {
    return Read("MistralForCausalLM", members)->windows;
  };
  EXPECT_EQ(windows(""), (Windows{4096, 4096, 4096}));
  EXPECT_EQ(windows(R"(, "sliding_window": 8)"), (Windows{8, 8, 8}));
  EXPECT_EQ(windows(R"(, "sliding_window": null)"), Windows());
  EXPECT_LT(windows(R"(, "sliding_window": 9223372036854775807)")[0], int64_t{1} << 40)
      << "positions are added to it";
  EXPECT_EQ(windows(R"(, "sliding_window": 8, "layer_types": ["full_attention",
      "sliding_attention", "full_attention"])"),
            (Windows{0, 8, 0}));
  EXPECT_EQ(Read("MistralForCausalLM", R"(, "head_dim": null)")->head_dim, 16);
}

TEST(Qwen2, HasBiasesOnQkvAndSlidesBehindTheFirstLayersIfToldTo) {
  const auto spec = Read("Qwen2ForCausalLM", R"(, "sliding_window": 8, "max_window_layers": 1)");
  EXPECT_TRUE(spec->qkv_bias);
  EXPECT_FALSE(spec->attention_output_bias);
  EXPECT_EQ(spec->qk_norm, QkNorm::kNone);
  EXPECT_EQ(spec->windows, Windows());
  const std::string used = R"(, "use_sliding_window": true, "sliding_window": 8)";
  EXPECT_EQ(Read("Qwen2ForCausalLM", used + R"(, "max_window_layers": 1)")->windows,
            (Windows{0, 8, 8}));
  EXPECT_EQ(Read("Qwen2ForCausalLM", used)->windows, Windows());
  EXPECT_EQ(Read("Qwen2ForCausalLM", used + R"(, "max_window_layers": 3, "layer_types":
      ["sliding_attention", "full_attention", "full_attention"])")
                ->windows,
            (Windows{8, 0, 0}));
}

TEST(Qwen3, HasNormsOfHeadsAndAHeadDimensionOfItsOwn) {
  const auto spec = Read("Qwen3ForCausalLM", R"(, "attention_bias": true)");
  EXPECT_EQ(spec->qk_norm, QkNorm::kHeads);
  EXPECT_TRUE(spec->qkv_bias);
  EXPECT_TRUE(spec->attention_output_bias);
  EXPECT_EQ(spec->head_dim, 128);
  const Value config = ParseJson(R"({"architectures": ["Qwen3ForCausalLM"]})", "config").value();
  Model model = BuildGraph(**FindArchitecture(config), *spec, nullptr).value();
  const auto norms = model.blocks[2].norms();
  ASSERT_EQ(norms.size(), 4U);
  EXPECT_EQ(norms[2]->name, "model.layers.2.self_attn.q_norm");
  EXPECT_EQ(norms[3]->name, "model.layers.2.self_attn.k_norm");
}

TEST(Windows, WhatIsWrongIsNamed) {
  const struct {
    const char* class_name;
    const char* members;
    std::vector<const char*> parts;
  } cases[] = {
      {"MistralForCausalLM", R"(, "sliding_window": 0)", {"sliding_window", "0"}},
      {"MistralForCausalLM", R"(, "sliding_window": "wide")", {"sliding_window"}},
      {"MistralForCausalLM", R"(, "layer_types": ["full_attention"])", {"layer_types", "3"}},
      {"MistralForCausalLM", R"(, "layer_types": "full_attention")", {"layer_types"}},
      {"Qwen3ForCausalLM",
       R"(, "layer_types": ["full_attention", "linear_attention", "full_attention"])",
       {"linear_attention", "sliding_attention"}},
      {"Qwen3ForCausalLM",
       R"(, "layer_types": ["full_attention", 7, "full_attention"])",
       {"layer_types", "integer"}},
      {"Qwen2ForCausalLM",
       R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention"])",
       {"sliding_window", "not used"}},
      {"Qwen2ForCausalLM", R"(, "use_sliding_window": 1)", {"use_sliding_window"}},
  };
  for (const auto& [class_name, members, parts] : cases) {
    const auto spec = Read(class_name, members);
    ASSERT_FALSE(spec.ok()) << members;
    for (const char* part : parts) {
      EXPECT_NE(spec.status().message().find(part), std::string::npos)
          << part << " is not in: " << spec.status().message();
    }
  }
}

}  // namespace
}  // namespace octavo
