#include "compress/mixed_recipe.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/yaml.h"
#include "compress/recipe.h"
#include "quant/config.h"
#include "support/golden_files.h"

namespace octavo {
namespace {

std::string Layer(int block, const std::string& rest) {
  return "model.layers." + std::to_string(block) + "." + rest;
}

// Twelve blocks of q/k/v and down; blocks 3, 4 and 11 get eight bits for down.
BitTable Table() {
  BitTable table{.candidates = {"W4A16", "W8A16"}, .group_size = 64, .method = "gptq", .units = {}};
  for (int block = 0; block < 12; ++block) {
    table.units.push_back(
        {.layers = {Layer(block, "self_attn.q_proj"), Layer(block, "self_attn.k_proj"),
                    Layer(block, "self_attn.v_proj")},
         .weights = 1000,
         .options = {{4250, 0.001}, {8250, 0.0001}}});
    const bool sensitive = block == 3 || block == 4 || block == 11;
    table.units.push_back({.layers = {Layer(block, "mlp.down_proj")},
                           .weights = 2000,
                           .options = {{8500, sensitive ? 0.1 : 0.001}, {16500, 0.0001}}});
  }
  return table;
}

RecipeFlags Flags() {
  const BitTable table = Table();
  const auto choice = ChooseLeastLoss(table.Options(), 12 * 12750 + 3 * 8000).value();
  RecipeFlags flags;
  flags.group_size = 64;
  flags.schemes = MixedGroups(
      table, choice, {PresetScheme("W4A16", {}).value(), PresetScheme("W8A16", {}).value()});
  return flags;
}

TEST(MixedRecipe, EveryLayerGetsWhatWasChosen) {
  const auto recipe = MakeRecipe(Flags(), NullLogger());
  ASSERT_OK(recipe);
  const auto resolver = SchemeResolver::Make(*recipe->modifiers.front()->quantization()).value();
  for (int block = 0; block < 12; ++block) {
    const auto bits = [&](const std::string& rest) {
      const auto scheme = resolver.Resolve({Layer(block, rest), "Linear"}).value();
      EXPECT_EQ(scheme->weights->group_size, 64);
      return scheme->weights->num_bits;
    };
    EXPECT_EQ(bits("self_attn.q_proj"), 4);
    EXPECT_EQ(bits("mlp.down_proj"), block == 3 || block == 4 || block == 11 ? 8 : 4) << block;
  }
}

TEST(MixedRecipe, SavedItReadsBackAsTheSame) {
  auto recipe = MakeRecipe(Flags(), NullLogger());
  ASSERT_OK(recipe);
  recipe->comment = "what was chosen\nand why";
  const std::string yaml = RecipeYaml(*recipe);
  EXPECT_TRUE(yaml.starts_with("# what was chosen\n# and why\n")) << yaml;
  EXPECT_NE(yaml.find("model\\.layers\\.(3|4|11)\\.mlp\\.down_proj$"), std::string::npos) << yaml;
  const auto again = ParseRecipe(yaml, "recipe.yaml", NullLogger());
  ASSERT_OK(again);
  EXPECT_EQ(again->modifiers.front()->quantization()->config_groups,
            recipe->modifiers.front()->quantization()->config_groups);
}

TEST(MixedRecipe, TargetsAreOneExpressionAProjection) {
  EXPECT_EQ(TargetsOf({Layer(0, "mlp.gate_proj"), Layer(0, "mlp.up_proj"), Layer(7, "mlp.up_proj"),
                       "lm_head"}),
            (std::vector<std::string>{"lm_head", R"(re:model\.layers\.(0)\.mlp\.gate_proj$)",
                                      R"(re:model\.layers\.(0|7)\.mlp\.up_proj$)"}));
  const auto targets = TargetsOf({Layer(1, "mlp.up_proj")});
  EXPECT_TRUE(MatchesPattern(targets[0], {Layer(1, "mlp.up_proj"), "Linear"}).value());
  EXPECT_FALSE(MatchesPattern(targets[0], {Layer(11, "mlp.up_proj"), "Linear"}).value());
  EXPECT_FALSE(MatchesPattern(targets[0], {Layer(1, "mlp.up_proj_2"), "Linear"}).value());
}

TEST(MixedRecipe, TheDescriptionHasBitsLossAndCounts) {
  const BitTable table = Table();
  const auto choice = ChooseLeastLoss(table.Options(), 12 * 12750 + 3 * 8000).value();
  const std::string text = DescribeChoice(table, choice);
  EXPECT_NE(text.find("4.917 bits"), std::string::npos) << text;
  EXPECT_NE(text.find("W8A16: 3 of 24 units"), std::string::npos) << text;
}

TEST(BitTable, ReadsBackAsItWasWritten) {
  const BitTable table = Table();
  const auto again = ParseBitTable(WriteJson(ToJson(table)), "table.json");
  ASSERT_OK(again);
  EXPECT_EQ(again->candidates, table.candidates);
  EXPECT_EQ(again->group_size, 64);
  ASSERT_EQ(again->units.size(), table.units.size());
  EXPECT_EQ(again->units[7].layers, table.units[7].layers);
  EXPECT_EQ(again->units[7].options[0].kl, table.units[7].options[0].kl);
  EXPECT_EQ(again->weights(), 36000);
}

TEST(BitTable, BrokenOnesAreRefusedWithThePlace) {
  for (
      const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
          {"[]", "table.json"},
          {R"({"candidates": ["W4A16"], "units": []})", "no units"},
          {R"({"candidates": ["W4A16"], "units": [{"layers": ["a"], "weights": 3, "bits": [1, 2], "kl": [0]}]})",
           "units[0]"},
          {R"({"candidates": ["W4A16"], "units": [{"layers": ["a"], "weights": 3, "bits": ["x"], "kl": [0]}]})",
           "integers"}}) {
    const auto table = ParseBitTable(text, "table.json");
    ASSERT_FALSE(table.ok()) << text;
    EXPECT_NE(table.status().ToString().find(expected), std::string::npos)
        << table.status().ToString();
  }
}

}  // namespace
}  // namespace octavo
