// `octavo compare` as a user runs it: the table, the files, the gate, and what bad input leads to.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;
using testing::TestData;

const std::string kStories = Repository("data/stories260k");
const std::string kText = Repository("data/text/tinystories.txt");

class CompareCommand : public ::testing::Test {
 protected:
  // stories260k, rounded to nearest.
  std::string Quantized(const std::string& scheme) {
    const std::string out = folder_.path() / scheme;
    const Outcome outcome = RunOctavo({"quantize", kStories, "-o", out, "--scheme", scheme,
                                       "--method", "rtn", "--group-size", "4", "-q"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return out;
  }
  Outcome Compare(const std::vector<std::string>& models, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"compare", kStories};
    arguments.insert(arguments.end(), models.begin(), models.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--no-speed", "-q"});
    return RunOctavo(arguments);
  }
  static std::vector<std::string> Text() {
    return {"--text", kText, "--window", "128", "--max-windows", "6"};
  }
  static std::vector<std::string> TextAnd(std::vector<std::string> more) {
    std::vector<std::string> all = Text();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(CompareCommand, SeveralModelsAreColumnsOfATableAndOneReport) {
  const std::vector<std::string> models = {Quantized("W8A16"), Quantized("W4A16")};
  const std::string report = folder_.path() / "report.html";
  const Outcome outcome = Compare(models, TextAnd({"--html", report}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"stories260k  ", "W8A16", "W4A16", "perplexity", "KL divergence, mean",
                           "6 windows of 128 tokens: 768 positions"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  const std::string html = ReadFile(report).value();
  EXPECT_NE(html.find("Size against loss"), std::string::npos);
  EXPECT_NE(html.find("octavo compare " + kStories), std::string::npos) << "the command line";

  const Outcome again = Compare(models, TextAnd({"--html", report}));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("--force"), std::string::npos) << again.err;
  EXPECT_EQ(Compare(models, TextAnd({"--html", report, "--force"})).exit_code, 0);
}

TEST_F(CompareCommand, JsonHasTheModelsInOrderAndMarkdownIsATable) {
  const std::vector<std::string> models = {Quantized("W4A16"), kStories};
  const Outcome outcome = Compare(models, TextAnd({"--json"}));
  // Two of one label: the paths are the labels.
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value json = outcome.json();
  EXPECT_EQ(json.Find("positions")->as_int(), 768);
  EXPECT_EQ(json.Find("tokens")->as_int(), 762);
  const Value::Array& list = json.Find("models")->as_array();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_GT(list[0].Find("kl")->as_double(), 0);
  EXPECT_EQ(list[1].Find("kl")->as_double(), 0);
  EXPECT_EQ(list[1].Find("perplexity_ratio")->as_double(), 1);
  EXPECT_EQ(list[1].Find("label")->as_string(), kStories);
  EXPECT_EQ(list[0].Find("sha256")->Find("model.safetensors")->as_string().size(), 64U);
  EXPECT_EQ(list[0].Find("recipe_source")->as_string(), "recipe.yaml");

  const Outcome markdown = Compare({models[0]}, TextAnd({"--markdown"}));
  EXPECT_EQ(markdown.exit_code, 0) << markdown.err;
  EXPECT_NE(markdown.out.find("| --- | ---: | ---: |"), std::string::npos) << markdown.out;
}

TEST_F(CompareCommand, TheGateExitsWithThree) {
  const std::vector<std::string> model = {Quantized("W4A16")};
  const Outcome missed =
      Compare(model, TextAnd({"--max-kl", "0.000001", "--max-ppl-increase", "500%"}));
  EXPECT_EQ(missed.exit_code, 3);
  EXPECT_NE(missed.out.find("MISSED: W4A16: KL divergence"), std::string::npos) << missed.out;
  EXPECT_NE(missed.out.find("passed: W4A16: perplexity"), std::string::npos) << missed.out;
  EXPECT_NE(missed.err.find("1 of 2 bounds"), std::string::npos) << missed.err;
  EXPECT_EQ(Compare(model, TextAnd({"--max-kl", "10", "--json"})).exit_code, 0);
}

TEST_F(CompareCommand, TasksAreAnsweredByBothAndPaired) {
  const std::vector<std::string> flags = {"--tasks", "hellaswag", "--limit",
                                          "20",      "--data",    TestData("eval/docs")};
  const Outcome outcome = Compare({Quantized("W8A16")}, flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("with 20 questions"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("acc_norm"), std::string::npos);

  std::vector<std::string> answers = flags;
  answers.insert(answers.end(), {"--answers", "--json"});
  const Value json = Compare({kStories}, answers).json();
  EXPECT_EQ(json.Find("text")->as_string(), "the right answers of hellaswag (20)");
  EXPECT_EQ(json.Find("windows")->as_int(), 20);
  EXPECT_EQ(json.Find("models")->as_array().at(0).Find("kl")->as_double(), 0);

  std::vector<std::string> impossible = flags;
  impossible.insert(impossible.end(), {"--min-recovery", "1000"});
  EXPECT_EQ(Compare({kStories}, impossible).exit_code, 3);
}

TEST_F(CompareCommand, RowsOfADataSetAreReadInsteadOfAText) {
  const std::string rows = folder_.path() / "rows.jsonl";
  ASSERT_TRUE(WriteFileAtomically(rows,
                                  "{\"text\": \"Once upon a time there was a dog.\"}\n"
                                  "{\"text\": \"Tom and Lily went to the park.\"}\n"
                                  "{\"text\": \"The end.\"}\n")
                  .ok());
  const Outcome outcome =
      Compare({kStories}, {"--chats", rows, "--max-windows", "2", "--window", "16"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("rows.jsonl, 2 rows of at most 16 tokens"), std::string::npos)
      << outcome.out;
}

TEST_F(CompareCommand, QuantizeVerifiesOnRowsThatWereNotCalibratedOn) {
  const auto quantize = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "quantize",     kStories, "-o", folder_.path() / out, "--scheme", "W8A8", "--method", "rtn",
        "--max-length", "64",     "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunOctavo(arguments);
  };
  const std::vector<std::string> calibration = {"--calibration", kText, "--num-samples", "8"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), calibration.begin(), calibration.end());
    return more;
  };
  const Outcome verified = quantize("verified", with({"--verify"}));
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_NE(verified.out.find("16 rows of " + kText + " that were not calibrated on"),
            std::string::npos)
      << verified.out;
  EXPECT_NE(verified.out.find("verified: perplexity "), std::string::npos) << verified.out;

  const Outcome missed = quantize("missed", with({"--verify", "--verify-max-kl", "0"}));
  EXPECT_EQ(missed.exit_code, 3);
  EXPECT_NE(missed.out.find("MISSED: missed: KL"), std::string::npos) << missed.out;
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "missed" / "config.json"))
      << "what was made stays";

  const Outcome text = quantize("text", {"--verify", "--verify-text", kText, "--json"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.json().Find("verification")->Find("windows")->as_int(), 16);

  const Outcome nothing = quantize("nothing", {"--verify"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_NE(nothing.err.find("--verify-text FILE"), std::string::npos) << nothing.err;
  const Outcome all =
      quantize("all", {"--verify", "--calibration", kText, "--num-samples", "99999"});
  EXPECT_NE(all.err.find("none is behind the first 99999"), std::string::npos) << all.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "all")) << "refused before the work";
}

TEST_F(CompareCommand, BadInputIsNamed) {
  const auto fails = [&](const std::vector<std::string>& models,
                         const std::vector<std::string>& flags, const std::string& message) {
    const Outcome outcome = Compare(models, flags);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  };
  fails({kStories}, {}, "--text FILE");
  fails({kStories}, {"--tasks", "hellaswag", "--max-kl", "1"}, "need a text");
  fails({kStories}, TextAnd({"--min-recovery", "99"}), "needs tasks");
  fails({kStories}, {"--tasks", "humaneval", "--data", TestData("eval/docs")}, "humaneval");
  fails({TestData("checkpoints/base-llama")}, Text(), "a vocabulary of 128 tokens");
  EXPECT_EQ(Compare({kStories}, TextAnd({"--max-ppl-increase", "1"})).exit_code, 2);

  const std::string other = folder_.path() / "other";
  std::filesystem::copy(kStories, other);
  std::string tokenizer = ReadFile(other + "/tokenizer.json").value();
  for (size_t at = 0; (at = tokenizer.find("<unk>", at)) != std::string::npos;)
    tokenizer.replace(at, 5, "<huh>");
  ASSERT_TRUE(WriteFileAtomically(other + "/tokenizer.json", tokenizer).ok());
  fails({other}, Text(), "token 0 is \"<unk>\" there and \"<huh>\" here");
}

}  // namespace
}  // namespace octavo
