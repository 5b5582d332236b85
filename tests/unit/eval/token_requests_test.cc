// Where a context ends and its continuation begins, in tokens, as lm-evaluation-harness splits
// them; and the windows of long texts.
#include "eval/token_requests.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "unit/eval/eval_data.h"

namespace octavo {
namespace {

using testing::IntegersOf;
using testing::ReadEvalRows;
using testing::TestData;

// The pairs of one model: splits, what the model is fed, and where lm-eval stops.
void ExpectPairs(const std::string& model, TokenId prefix) {
  const auto tokenizer = Tokenizer::Load(TestData("tokenizers/" + model));
  ASSERT_OK(tokenizer);
  const RequestEncoder encoder(*tokenizer, prefix, std::nullopt);
  for (const Value& row : ReadEvalRows(model + "/encode_pairs.jsonl")) {
    const std::string& context = row.Find("context")->as_string();
    const std::string& continuation = row.Find("continuation")->as_string();
    SCOPED_TRACE(JsonString(context) + " + " + JsonString(continuation));
    const auto request = encoder.EncodePair(context, continuation);
    ASSERT_OK(request);
    const auto fed = Feed(*request, row.Find("max_length")->as_int());
    if (row.Find("error") != nullptr) {
      EXPECT_EQ(fed.status().code(), StatusCode::kInvalidArgument);
      continue;
    }
    EXPECT_EQ(request->context, IntegersOf<TokenId>(*row.Find("context_enc")));
    EXPECT_EQ(request->continuation, IntegersOf<TokenId>(*row.Find("continuation_enc")));
    ASSERT_OK(fed);
    EXPECT_EQ(fed->tokens, IntegersOf<TokenId>(*row.Find("fed")));
    EXPECT_EQ(fed->first_scored, std::ssize(fed->tokens) - std::ssize(request->continuation));
  }
}

TEST(TokenRequests, PairsOfATokenizerThatAddsBos) {
  ExpectPairs("stories260k", 1);
}

TEST(TokenRequests, PairsOfATokenizerThatAddsNone) {
  ExpectPairs("smollm2", 1);
}

TEST(TokenRequests, AContinuationLongerThanTheModelIsRefused) {
  const TokenRequest request{{1}, {2, 3, 4, 5}};
  EXPECT_TRUE(Feed(request, 4).ok());
  EXPECT_NE(Feed(request, 3).status().message().find("4 tokens"), std::string::npos);
}

TEST(TokenRequests, AddBosIsAnOption) {
  const auto stories = Tokenizer::Load(TestData("tokenizers/stories260k"));
  ASSERT_OK(stories);
  EXPECT_EQ(RequestEncoder(*stories, 1, true).Encode("Once")->front(), 1);
  EXPECT_NE(RequestEncoder(*stories, 1, false).Encode("Once")->front(), 1);
  const auto smollm2 = Tokenizer::Load(TestData("tokenizers/smollm2"));
  ASSERT_OK(smollm2);
  EXPECT_EQ(RequestEncoder(*smollm2, 1, true).Encode("Once")->front(), 1);
  // A text that begins with BOS gets no second one.
  const auto ids = RequestEncoder(*smollm2, 1, true).Encode("<|im_start|>user");
  ASSERT_OK(ids);
  EXPECT_EQ(ids->front(), 1);
  EXPECT_NE(ids->at(1), 1);
}

TEST(TokenRequests, RollingWindows) {
  for (const Value& row : ReadEvalRows("wikitext/rolling_windows.jsonl")) {
    if (row.Find("context_len")->as_int() != 1) continue;  // tasks have 1
    SCOPED_TRACE(WriteJson(row));
    std::vector<TokenId> tokens(static_cast<size_t>(row.Find("tokens")->as_int()));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i);
    const auto windows = RollingWindows(tokens, -1, row.Find("max_seq_len")->as_int());
    const Value::Array& expected = row.Find("windows")->as_array();
    ASSERT_EQ(windows.size(), expected.size());
    for (size_t i = 0; i < windows.size(); ++i) {
      EXPECT_EQ(windows[i].context, IntegersOf<TokenId>(expected[i].as_array()[0]));
      EXPECT_EQ(windows[i].continuation, IntegersOf<TokenId>(expected[i].as_array()[1]));
    }
  }
}

TEST(SpecialTokens, OfACheckpoint) {
  const auto folder = std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
  const auto tokenizer = Tokenizer::Load(folder);
  ASSERT_OK(tokenizer);
  const auto tokens = ReadSpecialTokens(folder, *tokenizer);
  ASSERT_OK(tokens);
  EXPECT_EQ(tokens->bos, 1);
  EXPECT_EQ(tokens->eos, 2);
  EXPECT_EQ(tokens->Prefix().value(), 1);
  const testing::TemporaryFolder empty;
  EXPECT_FALSE(ReadSpecialTokens(empty.path(), *tokenizer)->Prefix().ok());
}

}  // namespace
}  // namespace octavo
