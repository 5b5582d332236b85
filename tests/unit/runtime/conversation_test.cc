// Chats: what is rendered, remembered and computed anew.
#include "runtime/conversation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "runtime/load.h"
#include "support/golden_files.h"
#include "text/dataset.h"

namespace octavo {
namespace {

class ConversationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
    loaded_ = LoadModel(folder, {}, context_.context).value();
    tokenizer_ = std::make_unique<Tokenizer>(Tokenizer::Load(folder).value());
    template_ = std::make_unique<ChatTemplate>(
        ChatTemplate::Compile("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                              "{% if add_generation_prompt %}assistant: {% endif %}",
                              Value::MakeObject())
            .value());
    chat_ =
        std::make_unique<Conversation>(loaded_->model(), *tokenizer_, *template_, context_.context);
  }

  GenerateResult Ask(std::string_view message) {
    auto result = chat_->Ask(message, {.max_tokens = 12}, [](std::string_view) {});
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return result.ok() ? *result : GenerateResult();
  }

  testing::TestContext context_;
  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Conversation> chat_;
};

TEST_F(ConversationTest, OnlyWhatIsNewIsComputed) {
  chat_->Start("Be kind.");
  const GenerateResult first = Ask("Once upon a time");
  EXPECT_EQ(first.cached_tokens, 0);
  const GenerateResult second = Ask("And then");
  EXPECT_GE(second.cached_tokens, first.prompt_tokens);
  EXPECT_LT(second.cached_tokens, second.prompt_tokens);

  // The same answer as to the whole conversation at once.
  const std::string whole = "system: Be kind.\nuser: Once upon a time\nassistant: " + first.text +
                            "\nuser: And then\nassistant: ";
  Session session(loaded_->model(), context_.context, DType::kBF16);
  const auto anew = session.Generate(tokenizer_->Encode(whole, false).value(), {.max_tokens = 12},
                                     *tokenizer_, [](std::string_view) {});
  ASSERT_OK(anew);
  EXPECT_EQ(second.text, anew->text);
  EXPECT_EQ(chat_->messages().as_array().size(), 5U);
}

TEST_F(ConversationTest, StartingAnewForgets) {
  chat_->Start("");
  const GenerateResult first = Ask("Tom had a dog");
  Ask("Go on");
  chat_->Start("");
  EXPECT_EQ(Ask("Tom had a dog").text, first.text);
  EXPECT_EQ(chat_->messages().as_array().size(), 2U);
}

TEST_F(ConversationTest, AfterAnErrorTheConversationIsWhatItWas) {
  Ask("Tom had a dog");
  std::string endless;
  for (int i = 0; i < 600; ++i) endless += "very ";
  const auto failed = chat_->Ask(endless, {}, [](std::string_view) {});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("512 positions"), std::string::npos);
  EXPECT_EQ(chat_->messages().as_array().size(), 2U);
  Ask("Go on");
  EXPECT_EQ(chat_->messages().as_array().size(), 4U);
}

}  // namespace
}  // namespace octavo
