// Bits chosen by measurement, as a user asks for them, on the model of 260,000 parameters.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;

const std::string kStories = Repository("data/stories260k");
const std::string kText = Repository("data/text/tinystories.txt");

class ChooseBits : public ::testing::Test {
 protected:
  // 172 columns of down_proj are no multiple of 32.
  Outcome Quantize(const std::string& out, const std::vector<std::string>& more,
                   const std::string& candidates = "W4A16,W8A16") {
    std::vector<std::string> arguments = {"quantize",
                                          kStories,
                                          "-o",
                                          folder_.path() / out,
                                          "--method",
                                          "rtn",
                                          "--group-size",
                                          "32",
                                          "--candidates",
                                          candidates,
                                          "--ignore",
                                          "lm_head",
                                          "re:.*down_proj",
                                          "--calibration",
                                          kText,
                                          "--num-samples",
                                          "8",
                                          "--max-length",
                                          "128"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunOctavo(arguments);
  }
  std::string Path(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
};

// Scales are float32 as the model is: 5 and 9 bits a weight.
TEST_F(ChooseBits, AMixWithinTheBitsThatReadsBackAndIsApplied) {
  const std::string table = Path("table.json");
  const Outcome mixed = Quantize("mixed", {"--target-bits", "6", "--sensitivities", table});
  ASSERT_EQ(mixed.exit_code, 0) << mixed.err;
  EXPECT_NE(mixed.err.find("bits a weight"), std::string::npos) << mixed.err;
  EXPECT_NE(mixed.err.find("KL to the original as quantized"), std::string::npos) << mixed.err;
  EXPECT_FALSE(std::filesystem::exists(Path("mixed.candidates"))) << "candidates are removed";

  const std::string recipe = ReadFile(Path("mixed/recipe.yaml")).value();
  EXPECT_TRUE(recipe.starts_with("# Chosen by measurement: ")) << recipe;
  EXPECT_NE(recipe.find("W8A16:"), std::string::npos) << recipe;
  const Value config =
      ParseJson(ReadFile(Path("mixed/config.json")).value(), "config.json").value();
  EXPECT_EQ(config.Find("quantization_config")->Find("config_groups")->as_object().size(), 2U);

  // The recipe alone, edited or not, makes the same model.
  const Outcome again =
      RunOctavo({"quantize", kStories, "-o", Path("again"), "--recipe", Path("mixed/recipe.yaml")});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(ReadFile(Path("again/model.safetensors")).value(),
            ReadFile(Path("mixed/model.safetensors")).value());

  // What was measured is chosen from again: no candidate is made for it.
  const Outcome larger = Quantize("larger", {"--target-bits", "8", "--sensitivities", table,
                                             "--dry-run", "--write-recipe", Path("larger.yaml")});
  ASSERT_EQ(larger.exit_code, 0) << larger.err;
  EXPECT_EQ(larger.err.find("candidate 1"), std::string::npos) << larger.err;
  EXPECT_FALSE(std::filesystem::exists(Path("larger")));
  EXPECT_NE(ReadFile(Path("larger.yaml")).value().find("W4A16:"), std::string::npos);

  const Outcome within = Quantize("within", {"--max-kl", "0.001", "--sensitivities", table});
  EXPECT_EQ(within.exit_code, 0) << within.err;
}

// The bound is of all chosen layers together, which lose more than the sum of each alone.
TEST_F(ChooseBits, TheMixKeepsToTheLossThatIsMeasured) {
  constexpr double kMaxKl = 0.002;
  const Outcome chosen = Quantize(
      "out", {"--max-kl", std::to_string(kMaxKl), "--dry-run", "--write-recipe", Path("yaml")});
  ASSERT_EQ(chosen.exit_code, 0) << chosen.err;
  const std::string recipe = ReadFile(Path("yaml")).value();
  constexpr std::string_view kBefore = "measured before quantizing: KL ";
  const size_t at = recipe.find(kBefore);
  ASSERT_NE(at, std::string::npos) << recipe;
  const double together = std::stod(recipe.substr(at + kBefore.size()));
  EXPECT_LE(together, kMaxKl);
  EXPECT_GT(together, 0);
  EXPECT_NE(recipe.find("W4A16: "), std::string::npos) << "no more bits than needed: " << recipe;
}

TEST_F(ChooseBits, CompareSaysWhatEachLayerLoses) {
  const std::string out = Path("w8a8");
  ASSERT_EQ(
      RunOctavo({"quantize", kStories, "-o", out, "--scheme", "W8A8", "--method", "rtn"}).exit_code,
      0);
  const std::vector<std::string> compare = {
      "compare", kStories,        out, "--text",     kText,           "--window", "64", "--stride",
      "64",      "--max-windows", "2", "--no-speed", "--sensitivity", "--layers"};
  const Outcome table = RunOctavo(compare);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("SQNR, dB"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("sum of all"), std::string::npos) << table.out;

  std::vector<std::string> as_json = compare;
  as_json.emplace_back("--json");
  const Outcome found = RunOctavo(as_json);
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const std::string json = found.out;
  EXPECT_NE(json.find("model.layers.4.mlp.down_proj"), std::string::npos) << json;
  EXPECT_NE(json.find("weight_sqnr_db"), std::string::npos) << json;

  const Outcome no_text = RunOctavo({"compare", kStories, out, "--layers"});
  EXPECT_EQ(no_text.exit_code, 1);
}

TEST_F(ChooseBits, WhatCannotBeIsRefusedWithTheRemedy) {
  const Outcome small = Quantize("out", {"--target-bits", "4"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_NE(small.err.find("5.000 bits a weight"), std::string::npos) << small.err;
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
  EXPECT_FALSE(std::filesystem::exists(Path("out.candidates")));

  const Outcome unknown = Quantize("out", {"--target-bits", "6"}, "W4A61");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("W4A16"), std::string::npos) << unknown.err;

  const Outcome no_data =
      RunOctavo({"quantize", kStories, "-o", Path("out"), "--target-bits", "6"});
  EXPECT_EQ(no_data.exit_code, 1);
  EXPECT_NE(no_data.err.find("--calibration"), std::string::npos) << no_data.err;
}

}  // namespace
}  // namespace octavo
