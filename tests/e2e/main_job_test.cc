// The main job on a real, small model: quantize with SmoothQuant and GPTQ, load, measure, compare,
// answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "e2e/run_octavo.h"
#include "io/checkpoint.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;

const std::string kStories = Repository("data/stories260k");
const std::string kText = Repository("data/text/tinystories.txt");

class MainJob : public ::testing::Test {
 protected:
  Outcome Quantize(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"quantize",
                                          kStories,
                                          "-o",
                                          folder_.path() / out,
                                          "--scheme",
                                          "W8A8",
                                          "--smoothquant",
                                          "0.8",
                                          "--calibration",
                                          kText,
                                          "--num-samples",
                                          "32",
                                          "--max-length",
                                          "128"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunOctavo(arguments);
  }
  TemporaryFolder folder_;
};

TEST_F(MainJob, QuantizeCompareAndGenerate) {
  const Outcome quantized = Quantize("w8a8");
  ASSERT_EQ(quantized.exit_code, 0) << quantized.err;
  EXPECT_NE(quantized.err.find("4096 tokens"), std::string::npos)
      << "the tokens used are reported: " << quantized.err;
  const std::string out = folder_.path() / "w8a8";
  for (const char* file : {"config.json", "model.safetensors", "recipe.yaml",
                           "quantization_report.json", "tokenizer.json", "tokenizer_config.json"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "w8a8" / file)) << file;
  }
  EXPECT_EQ(ReadFile(out + "/tokenizer.json").value(),
            ReadFile(kStories + "/tokenizer.json").value());

  const Outcome compared = RunOctavo({"compare", kStories, out, "--text", kText, "--window", "256",
                                      "--stride", "256", "--max-windows", "8", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  const Value json = compared.json();
  const Value& base = *json.Find("base");
  const Value& model = json.Find("models")->as_array().at(0);
  const double after = model.Find("perplexity")->as_double();
  EXPECT_NEAR(after / base.Find("perplexity")->as_double(), 1.0, 0.01);
  EXPECT_LT(model.Find("kl")->as_double(), 0.01);
  EXPECT_GT(model.Find("kl")->as_double(), 0);
  EXPECT_LT(model.Find("bytes")->as_int(), base.Find("bytes")->as_int());

  const Outcome perplexity = RunOctavo({"perplexity", out, "--text", kText, "--window", "256",
                                        "--stride", "256", "--max-windows", "8", "--json"});
  ASSERT_EQ(perplexity.exit_code, 0) << perplexity.err;
  EXPECT_EQ(perplexity.json().Find("perplexity")->as_double(), after);
  EXPECT_EQ(perplexity.json().Find("tokens")->as_int(), 8 * 255);

  const Outcome generated =
      RunOctavo({"generate", out, "-p", "Once upon a time", "-n", "20", "-q"});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_NE(generated.out.find("there was a"), std::string::npos) << generated.out;
}

TEST_F(MainJob, ASecondRunAndAnotherNumberOfThreadsGiveTheSameFile) {
  ASSERT_EQ(Quantize("one", {"--threads", "1"}).exit_code, 0);
  ASSERT_EQ(Quantize("two", {"--threads", "2"}).exit_code, 0);
  EXPECT_EQ(ReadFile(folder_.path() / "one/model.safetensors").value(),
            ReadFile(folder_.path() / "two/model.safetensors").value());
}

TEST_F(MainJob, AnExistingOutputIsRefused) {
  ASSERT_EQ(Quantize("out", {"--method", "rtn"}).exit_code, 0);
  const Outcome again = Quantize("out");
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("already exists"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("--force"), std::string::npos) << again.err;
  EXPECT_EQ(Quantize("out", {"--force"}).exit_code, 0);
}

// The number of lines of a file that may not be there yet.
int64_t Lines(const std::string& path) {
  const auto text = ReadFile(path);
  return text.ok() ? std::count(text->begin(), text->end(), '\n') : 0;
}

TEST_F(MainJob, CtrlCLeavesAStateThatTheSameCommandFinishes) {
  const auto arguments = [&](const std::string& out) {
    return std::vector<std::string>{"quantize",
                                    kStories,
                                    "-o",
                                    folder_.path() / out,
                                    "--scheme",
                                    "W8A8",
                                    "--calibration",
                                    kText,
                                    "--num-samples",
                                    "64",
                                    "--max-length",
                                    "512"};
  };
  ASSERT_EQ(RunOctavo(arguments("whole")).exit_code, 0);
  const std::string out = folder_.path() / "out";
  const Outcome stopped = RunOctavo(arguments("out"), [&](pid_t child) {
    // Until the journal has its head and the first block.
    for (int i = 0; i < 20'000 && Lines(out + ".unfinished/journal") < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(child, SIGINT);
  });
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_NE(stopped.err.find("give the same command again"), std::string::npos) << stopped.err;
  EXPECT_FALSE(std::filesystem::exists(out));

  const Outcome finished = RunOctavo(arguments("out"));
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("done by an earlier run"), std::string::npos) << finished.err;
  EXPECT_EQ(ReadFile(out + "/model.safetensors").value(),
            ReadFile(folder_.path() / "whole/model.safetensors").value());
  EXPECT_FALSE(std::filesystem::exists(out + ".unfinished"));
}

TEST_F(MainJob, ADryRunSaysWhatWouldBeDone) {
  const Outcome outcome = Quantize("out", {"--dry-run"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("nothing was written"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("estimates: "), std::string::npos) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "out"));
}

}  // namespace
}  // namespace octavo
