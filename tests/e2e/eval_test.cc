// `octavo eval` as a user runs it: the table, the files, and what bad input leads to.
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
using testing::TestData;

const std::string kStories = Repository("data/stories260k");
const std::string kData = TestData("eval/docs");

TEST(EvalCommand, WritesLmEvalsFilesAndTable) {
  const TemporaryFolder folder;
  const Outcome outcome =
      RunOctavo({"eval", kStories, "--tasks", "hellaswag,lambada_openai", "--data", kData,
                 "--limit", "8", "--output-path", folder.path(), "--log-samples"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("|hellaswag     |      1|none  |     0|acc       |↑"),
            std::string::npos)
      << outcome.out;
  int results = 0;
  int samples = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("results_") && name.ends_with(".json")) {
      ++results;
      const Value json = ParseJson(ReadFile(entry.path()).value(), name).value();
      EXPECT_EQ(json.Find("results")->Find("hellaswag")->Find("acc,none")->as_double(), 0.375);
      EXPECT_EQ(json.Find("config")->Find("limit")->as_double(), 8);
    }
    samples += name.starts_with("samples_") && name.ends_with(".jsonl") ? 1 : 0;
  }
  EXPECT_EQ(results, 1);
  EXPECT_EQ(samples, 2);
}

TEST(EvalCommand, JsonOnStdout) {
  const Outcome outcome = RunOctavo({"eval", kStories, "--tasks", "arc_challenge", "--data", kData,
                                     "--limit", "0.03", "--num-fewshot", "1", "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value json = outcome.json();
  EXPECT_EQ(json.Find("n-samples")->Find("arc_challenge")->Find("effective")->as_int(), 3);
  EXPECT_EQ(json.Find("n-shot")->Find("arc_challenge")->as_int(), 1);
}

// stories260k's tokenizer adds BOS, and its scores differ without.
TEST(EvalCommand, BosIsTheTokenizersUnlessAsked) {
  const auto accuracy = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"eval",   kStories, "--tasks", "arc_challenge",
                                          "--data", kData,    "--json"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Outcome outcome = RunOctavo(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.json().Find("results")->Find("arc_challenge")->Find("acc,none")->as_double();
  };
  EXPECT_EQ(accuracy({}), 0.17);
  EXPECT_EQ(accuracy({"--add-bos-token"}), 0.17);
  EXPECT_EQ(accuracy({"--no-add-bos-token"}), 0.16);
}

TEST(EvalCommand, BadInputIsNamed) {
  const auto fails = [](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), {"eval", kStories});
    const Outcome outcome = RunOctavo(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  };
  fails({"--tasks", "gms8k"}, "did you mean \"gsm8k\"?");
  fails({"--tasks", "gsm8k", "--data", kData}, "gsm8k/test.jsonl");
  fails({"--tasks", "hellaswag", "--log-samples"}, "--output-path");
  fails({"--tasks", "humaneval", "--data", kData}, "give --output-path");
  fails({"--tasks", "hellaswag", "--data", kData, "--max-length", "9999"}, "512 positions");
  fails({"--tasks", "hellaswag", "--data", kData, "--apply-chat-template"}, "chat_template");
  EXPECT_EQ(RunOctavo({"eval", kStories, "--tasks", "hellaswag", "--limit", "-1"}).exit_code, 2);
  EXPECT_EQ(RunOctavo({"eval", kStories, "--tasks", "hellaswag", "--batch-size", "0"}).exit_code,
            2);
  EXPECT_EQ(
      RunOctavo({"eval", kStories, "--tasks", "hellaswag", "--fewshot-as-multiturn"}).exit_code, 2);
}

TEST(EvalCommand, HelpAndListTeach) {
  const Outcome help = RunOctavo({"eval", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("octavo eval model --tasks gsm8k"), std::string::npos);
  const Outcome list = RunOctavo({"eval", kStories, "--tasks", "list"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_NE(list.out.find("openai/gsm8k"), std::string::npos);
}

}  // namespace
}  // namespace octavo
