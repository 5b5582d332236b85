// The command line: help, exit codes, messages, and what bad input leads to.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/run_octavo.h"
#include "io/safetensors.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;
using testing::TestData;

const std::string kStories = Repository("data/stories260k");

TEST(Cli, HelpTeachesAndEndsWell) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"quantize", "--help"},
                                                    {"generate", "--help"},
                                                    {"chat", "--help"},
                                                    {"bench", "model", "--help"},
                                                    {"compare", "--help"},
                                                    {"perplexity", "--help"}}) {
    const Outcome outcome = RunOctavo(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find("octavo "), std::string::npos);
  }
}

TEST(Cli, MistakesInTheCommandLineExitWithTwo) {
  EXPECT_EQ(RunOctavo({}).exit_code, 2);
  EXPECT_EQ(RunOctavo({"quantise"}).exit_code, 2);
  EXPECT_EQ(RunOctavo({"generate", kStories}).exit_code, 2);
  const Outcome unknown = RunOctavo({"generate", kStories, "-p", "x", "--temprature", "1"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("--temprature"), std::string::npos);
}

TEST(Cli, ErrorsGoToStderrAndExitWithOne) {
  const Outcome outcome = RunOctavo({"generate", "/nowhere/at-all", "-p", "x"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("octavo: not found: /nowhere/at-all"), std::string::npos)
      << outcome.err;
}

TEST(Cli, AnInstructionSetThatIsNotThereIsAnError) {
  setenv("OCTAVO_ISA", "avx1024", 1);
  const Outcome outcome = RunOctavo({"generate", kStories, "-p", "Once"});
  unsetenv("OCTAVO_ISA");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("OCTAVO_ISA=avx1024"), std::string::npos);
}

TEST(Cli, PortableKernelsGiveTheSameGreedyText) {
  const std::vector<std::string> arguments = {"generate",         kStories, "-p",
                                              "Once upon a time", "-n",     "40"};
  const std::string best = RunOctavo(arguments).out;
  setenv("OCTAVO_ISA", "ref", 1);
  const std::string portable = RunOctavo(arguments).out;
  unsetenv("OCTAVO_ISA");
  EXPECT_EQ(best, portable);
  EXPECT_NE(best.find("there was a little girl"), std::string::npos) << best;
}

TEST(Cli, OneSeedGivesOneTextForAnyNumberOfThreads) {
  const auto text = [](const std::string& threads, const std::string& seed) {
    return RunOctavo({"generate", kStories, "-p", "The", "-n", "50", "--temperature", "0.8",
                      "--top-k", "40", "--seed", seed, "--threads", threads})
        .out;
  };
  EXPECT_EQ(text("1", "5"), text("2", "5"));
  EXPECT_NE(text("1", "5"), text("1", "6"));
}

TEST(Cli, GenerateAsJson) {
  const Outcome outcome =
      RunOctavo({"generate", kStories, "-p", "Once", "-n", "8", "--json", "-q"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.json().Find("tokens")->as_array().size(), 8U);
  EXPECT_EQ(outcome.json().Find("finish_reason")->as_string(), "length");
  EXPECT_EQ(outcome.err, "") << "quiet";
}

TEST(Cli, CtrlCEndsGenerationCleanly) {
  const Outcome outcome = RunOctavo(
      {"generate", kStories, "-p", "Once", "-n", "100000", "--temperature", "1"}, [](pid_t child) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        kill(child, SIGINT);
      });
  // The model's 512 positions may be full before the signal comes.
  EXPECT_TRUE(outcome.exit_code == 130 || outcome.exit_code == 0) << outcome.exit_code;
  EXPECT_TRUE(outcome.out.ends_with("\n"));
}

TEST(Cli, ChatWithoutATemplateSaysSo) {
  const Outcome outcome = RunOctavo({"generate", kStories, "--chat", "-p", "Hello"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("template"), std::string::npos) << outcome.err;
}

TEST(Cli, TokenizeShowsIds) {
  const Outcome outcome = RunOctavo({"tokenize", kStories, "-p", "Once upon a time", "--special"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("1 403 407")) << outcome.out;
}

TEST(Cli, UnknownRecipeKeysAreNamedWithTheNearest) {
  const TemporaryFolder folder;
  const std::string recipe = folder.path() / "recipe.yaml";
  const auto error = [&](const std::string& text) {
    std::ofstream(recipe) << text;
    const Outcome outcome = RunOctavo(
        {"quantize", kStories, "-o", (folder.path() / "out").string(), "--recipe", recipe});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
    return outcome.err;
  };
  const std::string key = error(
      "q_stage:\n  q_modifiers:\n    GPTQModifier: {scheme: W8A8, dampening: 0.1, ignore: "
      "[lm_head]}\n");
  EXPECT_NE(key.find("dampening"), std::string::npos);
  EXPECT_NE(key.find("dampening_frac"), std::string::npos) << key;
  const std::string modifier =
      error("q_stage:\n  q_modifiers:\n    GTPQModifier: {scheme: W8A8}\n");
  EXPECT_NE(modifier.find("GTPQModifier"), std::string::npos);
  EXPECT_NE(modifier.find("\"GPTQModifier\""), std::string::npos) << modifier;
}

TEST(Cli, ABrokenCheckpointIsNamed) {
  const TemporaryFolder folder;
  std::filesystem::copy(kStories, folder.path() / "model",
                        std::filesystem::copy_options::recursive);
  const std::filesystem::path weights = folder.path() / "model/model.safetensors";
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) - 100);
  const Outcome outcome = RunOctavo({"generate", (folder.path() / "model").string(), "-p", "x"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("corrupt file: " + weights.string()), std::string::npos)
      << outcome.err;
}

TEST(Cli, LogitsReadsAndWritesSafetensors) {
  const TemporaryFolder folder;
  const auto golden = SafetensorsFile::Open(TestData("arch/llama/golden.safetensors"));
  ASSERT_OK(golden);
  const std::string input = folder.path() / "in.safetensors";
  const std::string output = folder.path() / "out.safetensors";
  const TensorView ids = golden->Find("input_ids").value();
  ASSERT_OK(WriteSafetensors(input, {{"input_ids", ids}}));
  std::filesystem::create_directory(folder.path() / "model");
  for (const char* file : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(TestData("arch/llama") / file, folder.path() / "model" / file);
  }
  const Outcome outcome = RunOctavo(
      {"logits", (folder.path() / "model").string(), "--input", input, "--output", output});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto written = SafetensorsFile::Open(output);
  ASSERT_OK(written);
  const TensorView logits = written->Find("logits").value();
  const TensorView expected = golden->Find("logits").value();
  ASSERT_EQ(logits.shape, expected.shape);
  for (size_t i = 0; i < expected.data<float>().size(); ++i) {
    ASSERT_NEAR(logits.data<float>()[i], expected.data<float>()[i], 1e-3) << i;
  }
  EXPECT_EQ(RunOctavo({"logits", (folder.path() / "model").string(), "--input", output, "--output",
                       input})
                .exit_code,
            1)
      << "no input_ids in there";
}

}  // namespace
}  // namespace octavo
