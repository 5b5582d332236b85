// Generation with a real model of 260,000 parameters (llama2.c's stories260K), which lies in the
// repository.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "runtime/load.h"
#include "runtime/sampler.h"
#include "support/golden_files.h"
#include "text/tokenizer.h"

namespace octavo {
namespace {

using testing::TestContext;

std::filesystem::path Stories() {
  return std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
}

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = LoadModel(Stories(), {}, context_.context);
    ASSERT_OK(loaded);
    loaded_ = *std::move(loaded);
    auto tokenizer = Tokenizer::Load(Stories());
    ASSERT_OK(tokenizer);
    tokenizer_ = std::make_unique<Tokenizer>(*std::move(tokenizer));
  }

  GenerateResult Generate(std::string_view prompt, const GenerateOptions& options,
                          const Context& context) {
    Session session(loaded_->model(), context, DType::kF32);
    std::string streamed;
    auto result = session.Generate(tokenizer_->Encode(prompt, true).value(), options, *tokenizer_,
                                   [&](std::string_view text) { streamed += text; });
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(streamed, result->text) << "what was streamed is the text";
    return *result;
  }
  GenerateResult Generate(std::string_view prompt, const GenerateOptions& options) {
    return Generate(prompt, options, context_.context);
  }

  TestContext context_;
  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(SessionTest, GreedyTokensAreThoseOfLlama2c) {
  const std::string path = testing::TestData("stories260k_reference.json").string();
  const Value reference = ParseJson(ReadFile(path).value(), path).value();
  const Value::Array& ids = reference.Find("greedy")->Find("ids")->as_array();
  Session session(loaded_->model(), context_.context, DType::kF32);
  TokenId token = static_cast<TokenId>(ids[0].as_int());
  for (size_t i = 1; i < ids.size(); ++i) {
    const auto logits = session.Feed({&token, 1});
    ASSERT_OK(logits);
    token = Argmax(*logits);
    ASSERT_EQ(token, ids[i].as_int()) << "step " << i;
  }
}

TEST_F(SessionTest, OneSeedGivesOneTextWithOneThreadAndWithTwo) {
  const GenerateOptions options{.sampling = {.temperature = 0.9, .top_p = 0.95, .seed = 11},
                                .max_tokens = 60};
  const TestContext one(1);
  EXPECT_EQ(Generate("Once upon a time", options, one.context).text,
            Generate("Once upon a time", options).text);
}

TEST_F(SessionTest, StopStringsEndTheTextBeforeThem) {
  const std::string whole = Generate("Once upon a time", {.max_tokens = 60}).text;
  const std::string stop = whole.substr(40, 6);
  const GenerateResult stopped =
      Generate("Once upon a time", {.max_tokens = 60, .stop = {"never there", stop}});
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.text, whole.substr(0, whole.find(stop)));
}

TEST_F(SessionTest, EosEndsTheTextAndIsNotPartOfIt) {
  const GenerateResult whole = Generate("Once upon a time", {.max_tokens = 30});
  const TokenId eos = whole.tokens[12];
  const GenerateResult ended =
      Generate("Once upon a time", {.max_tokens = 30, .eos_tokens = {eos}});
  EXPECT_EQ(ended.finish_reason, FinishReason::kEos);
  EXPECT_LE(ended.tokens.size(), 12U);
  EXPECT_EQ(whole.text.substr(0, ended.text.size()), ended.text);
}

TEST_F(SessionTest, MaxTokensAndPositionsEndTheText) {
  const GenerateResult result = Generate("Once", {.max_tokens = 5});
  EXPECT_EQ(result.finish_reason, FinishReason::kLength);
  EXPECT_EQ(result.tokens.size(), 5U);
  const GenerateResult full = Generate("Once", {.max_tokens = 100000});
  EXPECT_EQ(full.finish_reason, FinishReason::kLength);
  EXPECT_EQ(full.prompt_tokens + std::ssize(full.tokens), loaded_->model().spec.max_positions + 1);
}

TEST_F(SessionTest, CancellingEndsCleanlyWithWhatThereIs) {
  std::atomic<bool> cancelled{false};
  Context context = context_.context;
  context.cancelled = &cancelled;
  Session session(loaded_->model(), context, DType::kF32);
  int pieces = 0;
  const auto result =
      session.Generate(tokenizer_->Encode("Once", true).value(), {.max_tokens = 100}, *tokenizer_,
                       [&](std::string_view) { cancelled = ++pieces == 3; });
  ASSERT_OK(result);
  EXPECT_EQ(result->finish_reason, FinishReason::kCancelled);
  EXPECT_FALSE(result->text.empty());
}

TEST_F(SessionTest, BadPromptsAreRefused) {
  Session session(loaded_->model(), context_.context, DType::kF32);
  EXPECT_EQ(session.Feed({}).status().code(), StatusCode::kInvalidArgument);
  const TokenId outside = 512;
  EXPECT_NE(session.Feed({&outside, 1}).status().message().find("outside the vocabulary of 512"),
            std::string::npos);
  const std::vector<TokenId> many(513, 1);
  EXPECT_NE(session.Feed(many).status().message().find("513 tokens are more than the model's 512"),
            std::string::npos);
}

}  // namespace
}  // namespace octavo
