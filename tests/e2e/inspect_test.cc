// `octavo inspect`: tables, JSON, the exit code, and a recipe before it is run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;
using testing::TestData;

class InspectCommand : public ::testing::Test {
 protected:
  // A golden without what the library computed from it, which lies beside it.
  std::string Checkpoint(const std::string& name) {
    const std::filesystem::path source = TestData("checkpoints/" + name);
    const std::filesystem::path copy = folder_.path() / name;
    std::filesystem::create_directory(copy);
    for (const char* file : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(source / file, copy / file);
    return copy;
  }

  TemporaryFolder folder_;
};

TEST_F(InspectCommand, PrintsWhatJsonHas) {
  const std::string model = Checkpoint("llama-w8a8");
  const Outcome text = RunOctavo({"inspect", model, "--layers"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("Int8 not supported on SM100"), std::string::npos) << text.out;
  const Value json = RunOctavo({"inspect", model, "--layers", "--json"}).json();
  for (const char* table : {"summary", "layers", "engine_rows", "targets", "findings"}) {
    const Value* found = json.Find(table);
    ASSERT_NE(found, nullptr) << table;
    for (const Value& row : found->Find("rows")->as_array()) {
      for (const auto& [key, value] : row.as_object()) {
        if (!value.is_string()) continue;
        const std::string word = value.as_string().substr(0, value.as_string().find(' '));
        EXPECT_NE(text.out.find(word), std::string::npos) << key;
      }
    }
  }
}

TEST_F(InspectCommand, AWhyForOneLayer) {
  const Outcome outcome =
      RunOctavo({"inspect", Checkpoint("llama-w8a8"), "--why", "model.layers.0.mlp.down_proj"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("it computes what is declared"), std::string::npos) << outcome.out;
  EXPECT_EQ(RunOctavo({"inspect", Checkpoint("llama-fp8"), "--why", "nothing"}).exit_code, 1);
}

TEST_F(InspectCommand, PresetsAreMeasuredOnATextAndNothingIsLeftBehind) {
  setenv("TMPDIR", folder_.path().c_str(), 1);
  const Outcome outcome = RunOctavo({"inspect", Repository("data/stories260k"), "--compare-schemes",
                                     "--text", Repository("README.md"), "--json", "-q"});
  unsetenv("TMPDIR");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value json = outcome.json();
  const Value::Array& rows = json.Find("schemes")->Find("rows")->as_array();
  ASSERT_GE(rows.size(), 3U);
  for (const Value& row : rows) {
    const std::string preset = row.Find("preset")->as_string();
    const double kl = row.Find("kl")->as_double();
    if (preset == "UNQUANTIZED") {
      EXPECT_LT(kl, 1e-6);
    } else {
      EXPECT_GT(kl, 1e-4) << preset;
      EXPECT_LT(kl, 0.1) << preset;
    }
    EXPECT_GT(row.Find("same_top1")->as_double(), 0.75) << preset;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(InspectCommand, ADamagedCheckpointExitsWithOneAfterTheTables) {
  const std::string model = Checkpoint("llama-w8a8");
  const std::string config = ReadFile(model + "/config.json", 1 << 20).value();
  Value json = ParseJson(config, "config.json").value();
  json.Set("intermediate_size", 512);
  ASSERT_TRUE(WriteFileAtomically(model + "/config.json", WriteJson(json)).ok());
  const Outcome outcome = RunOctavo({"inspect", model, "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  // Weight and scale of gate and up, the weight of down, in two blocks.
  EXPECT_EQ(outcome.json().Find("problems")->Find("rows")->as_array().size(), 10U);
  EXPECT_NE(outcome.err.find("10 problems"), std::string::npos) << outcome.err;
}

TEST_F(InspectCommand, ARecipeShowsWhatQuantizeWouldMake) {
  const std::string model = Checkpoint("base-llama");
  const std::string recipe = folder_.path() / "recipe.yaml";
  ASSERT_TRUE(
      WriteFileAtomically(recipe,
                          "quant_stage:\n  quant_modifiers:\n    QuantizationModifier:\n"
                          "      targets: [Linear]\n      scheme: W8A8\n      ignore: [lm_head]\n")
          .ok());
  const Outcome outcome = RunOctavo({"inspect", model, "--recipe", recipe, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value planned = outcome.json();
  const Value made = RunOctavo({"inspect", Checkpoint("llama-w8a8"), "--json"}).json();
  EXPECT_EQ(WriteJson(*planned.Find("targets")), WriteJson(*made.Find("targets")));
  const Value& estimate = planned.Find("estimate")->Find("rows")->as_array().front();
  EXPECT_GT(estimate.Find("memory_bytes")->as_int(), 0);
  int64_t bytes = 0;
  for (const Value& row : made.Find("summary")->Find("rows")->as_array()) {
    if (row.Find("modules")->as_string() != "file headers" &&
        row.Find("scheme")->as_string() != "total")
      bytes += row.Find("bytes")->as_int();
  }
  EXPECT_EQ(estimate.Find("output_bytes")->as_int(), bytes);
}

TEST_F(InspectCommand, SchemesAreComparedAndHelpTeaches) {
  const Outcome outcome = RunOctavo({"inspect", Checkpoint("base-llama"), "--compare-schemes"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* preset : {"UNQUANTIZED", "W8A8", "W4A16", "FP8_BLOCK", "NVFP4", "MXFP8A16"})
    EXPECT_NE(outcome.out.find(preset), std::string::npos) << preset;
  const Outcome help = RunOctavo({"inspect", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("--compare-schemes"), std::string::npos);
}

}  // namespace
}  // namespace octavo
