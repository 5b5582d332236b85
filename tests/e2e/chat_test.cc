// `octavo chat` from a pipe, and what else the command line offers around generation.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "e2e/run_octavo.h"

namespace octavo {
namespace {

using testing::Outcome;
using testing::Repository;
using testing::RunOctavo;
using testing::TemporaryFolder;

const std::string kStories = Repository("data/stories260k");

// The stories model with a chat template.
class ChatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(kStories, folder_.path() / "model",
                          std::filesystem::copy_options::recursive);
    std::ofstream(folder_.path() / "model/chat_template.jinja")
        << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
           "{% if add_generation_prompt %}assistant: {% endif %}";
  }

  Outcome Chat(const std::string& typed, std::vector<std::string> arguments = {}) {
    const std::string input = folder_.path() / "typed";
    std::ofstream(input) << typed;
    const int file = open(input.c_str(), O_RDONLY);
    dup2(file, STDIN_FILENO);
    close(file);
    arguments.insert(arguments.begin(), {"chat", (folder_.path() / "model").string(), "-n", "12"});
    return RunOctavo(arguments);
  }

  TemporaryFolder folder_;
};

TEST_F(ChatTest, EachLineIsAMessageAndIsAnswered) {
  const Outcome outcome = Chat("Once upon a time\n\nAnd then\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2) << outcome.out;
  EXPECT_NE(outcome.err.find("tokens/s"), std::string::npos);
  EXPECT_EQ(Chat("Once upon a time\n", {"-q"}).err, "");
}

TEST_F(ChatTest, CommandsChangeTheConversation) {
  const std::string saved = folder_.path() / "saved.json";
  const Outcome outcome = Chat("forgotten\n/system Be kind.\n//slash\n/save " + saved +
                               "\n/reset\n/help\n/quit\nnever asked\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("/reset"), std::string::npos);
  const Value json = ParseJson(ReadFile(saved).value(), saved).value();
  const Value::Array& messages = json.Find("messages")->as_array();
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(messages[0].Find("content")->as_string(), "Be kind.");
  EXPECT_EQ(messages[1].Find("content")->as_string(), "/slash");
  EXPECT_EQ(messages[2].Find("role")->as_string(), "assistant");
}

TEST_F(ChatTest, ErrorsFromAPipeEndIt) {
  const Outcome unknown = Chat("/restart\nOnce\n");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_NE(unknown.err.find("there is no /restart"), std::string::npos) << unknown.err;
  EXPECT_EQ(unknown.out, "");
  std::string endless;
  for (int i = 0; i < 600; ++i) endless += "very ";
  const Outcome long_prompt = Chat(endless + "\n");
  EXPECT_EQ(long_prompt.exit_code, 1);
  EXPECT_NE(long_prompt.err.find("512 positions"), std::string::npos) << long_prompt.err;
  EXPECT_NE(long_prompt.err.find("shorten"), std::string::npos);
}

TEST_F(ChatTest, WithoutATemplateItSaysSo) {
  std::filesystem::remove(folder_.path() / "model/chat_template.jinja");
  const Outcome outcome = Chat("Hello\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("template"), std::string::npos) << outcome.err;
}

TEST(Generate, LogprobsAsJson) {
  const Outcome outcome =
      RunOctavo({"generate", kStories, "-p", "Once", "-n", "5", "--json", "-q", "--logprobs", "3"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value json = outcome.json();
  const Value::Array& rows = json.Find("logprobs")->as_array();
  ASSERT_EQ(rows.size(), 5U);
  for (const Value& row : rows) {
    const Value::Array& top = row.Find("top_logprobs")->as_array();
    ASSERT_EQ(top.size(), 3U);
    // Greedy: the token is the most likely one.
    EXPECT_EQ(row.Find("id")->as_int(), top[0].Find("id")->as_int());
    EXPECT_EQ(row.Find("logprob")->as_double(), top[0].Find("logprob")->as_double());
    double sum = 0;
    for (const Value& likely : top) sum += std::exp(likely.Find("logprob")->as_double());
    EXPECT_LE(sum, 1.0);
    EXPECT_GE(top[0].Find("logprob")->as_double(), top[2].Find("logprob")->as_double());
  }
}

TEST(Generate, PenaltiesChangeTheTextAndBadOnesAreNamed) {
  const auto text = [](const std::string& flag, const std::string& value) {
    return RunOctavo({"generate", kStories, "-p", "The", "-n", "60", flag, value}).out;
  };
  const std::string plain = text("--repetition-penalty", "1");
  EXPECT_NE(text("--repetition-penalty", "1.5"), plain);
  EXPECT_NE(text("--frequency-penalty", "1"), plain);
  EXPECT_NE(text("--presence-penalty", "1"), plain);
  const Outcome outcome =
      RunOctavo({"generate", kStories, "-p", "The", "--repetition-penalty", "0"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("repetition-penalty is 0"), std::string::npos) << outcome.err;
}

TEST(BenchModel, MeasuresEveryBatchAsJson) {
  const Outcome outcome =
      RunOctavo({"bench", "model", kStories, "--json", "-q", "--prefill", "16", "--context", "4",
                 "--decode", "4", "--batch", "1,3", "--seconds", "0"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Value json = outcome.json();
  EXPECT_GT(json.Find("prefill_tokens_per_second")->as_double(), 0);
  EXPECT_EQ(json.Find("prefill_roof")->as_string(), "f32");
  const Value::Array& rows = json.Find("decode")->as_array();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].Find("sequences")->as_int(), 3);
  EXPECT_GT(rows[1].Find("tokens_per_second")->as_double(), 0);
  EXPECT_GT(json.Find("first_token_seconds")->as_double(), 0);
  EXPECT_GT(json.Find("peak_memory_bytes")->as_int(), 1000000);
}

TEST(BenchModel, MoreThanTheModelsPositionsIsNamed) {
  const Outcome outcome = RunOctavo({"bench", "model", kStories, "--prefill", "600"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("512 positions"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace octavo
