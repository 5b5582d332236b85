// Chat templates of published models against what transformers renders (tests/data/templates), and
// loading them from a folder.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/temporary_folder.h"

namespace octavo {
namespace {

const std::filesystem::path kData = OCTAVO_TEST_DATA "/templates";

std::tm Clock() {
  std::tm now{};
  now.tm_year = 2025 - 1900;
  now.tm_mon = 2;
  now.tm_mday = 7;
  now.tm_hour = 9;
  now.tm_min = 5;
  now.tm_sec = 3;
  now.tm_wday = 5;
  now.tm_yday = 65;
  return now;
}

std::vector<Value> ReadRows(const std::filesystem::path& path) {
  std::vector<Value> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto row = ParseJson(line, path.string());
    EXPECT_TRUE(row.ok()) << row.status().message();
    if (row.ok()) rows.push_back(std::move(row).value());
  }
  return rows;
}

void CheckTemplate(const std::string& name, const Value& special_tokens,
                   const std::vector<Value>& chats) {
  const auto source = ReadFile(kData / (name + ".jinja"));
  ASSERT_TRUE(source.ok()) << source.status().message();
  auto compiled = ChatTemplate::Compile(*source, special_tokens);
  ASSERT_TRUE(compiled.ok()) << name << ": " << compiled.status().message();
  compiled->set_clock(Clock);
  const std::vector<Value> rows = ReadRows(kData / (name + ".jsonl"));
  ASSERT_EQ(rows.size(), chats.size()) << name;
  int passed = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(name + ", chat: " + rows[i].Find("chat")->as_string());
    Value options = *chats[i].Find("options");
    if (!chats[i].Find("tools")->is_null()) options.Set("tools", *chats[i].Find("tools"));
    const auto text = compiled->Render(*chats[i].Find("messages"), options);
    if (const Value* expected = rows[i].Find("text")) {
      ASSERT_TRUE(text.ok()) << text.status().message();
      ASSERT_EQ(*text, expected->as_string());
    } else {
      ASSERT_FALSE(text.ok()) << "expected " << rows[i].Find("error")->as_string() << ", got "
                              << *text;
    }
    ++passed;
  }
  EXPECT_EQ(passed, 49);
}

TEST(ChatTemplate, RendersPublishedTemplatesAsTransformersDoes) {
  const auto text = ReadFile(kData / "index.json");
  ASSERT_TRUE(text.ok());
  const auto index = ParseJson(*text, "index.json");
  ASSERT_TRUE(index.ok());
  const std::vector<Value> chats = ReadRows(kData / "chats.jsonl");
  ASSERT_EQ(chats.size(), 49U);
  ASSERT_GE(index->as_object().size(), 7U);
  for (const auto& [name, special_tokens] : index->as_object()) {
    CheckTemplate(name, special_tokens, chats);
  }
}

Value OneMessage(std::string_view content) {
  Value message;
  message.Set("role", "user");
  message.Set("content", content);
  return Value(Value::Array{message});
}

class ChatTemplateFolder : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string Rendered() {
    const auto loaded = ChatTemplate::Load(folder_);
    if (!loaded.ok()) return loaded.status().ToString();
    const auto text = loaded->Render(OneMessage("hi"), Value());
    return text.ok() ? *text : text.status().ToString();
  }
  testing::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

TEST_F(ChatTemplateFolder, TakesTheStringOfTokenizerConfig) {
  Write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>",
            "unk_token": null, "chat_template":
            "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ unk_token is defined }}"})");
  EXPECT_EQ(Rendered(), "<s>hi</s>False");
  EXPECT_EQ(ChatTemplate::Load(folder_)->bos_token(), "<s>");
}

TEST_F(ChatTemplateFolder, TakesTheDefaultOfAList) {
  Write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "no"},
                                     {"name": "default", "template": "yes"}]})");
  EXPECT_EQ(Rendered(), "yes");
}

TEST_F(ChatTemplateFolder, PrefersTheFileOfItsOwn) {
  Write("tokenizer_config.json", R"({"bos_token": "<b>", "chat_template": "config"})");
  Write("chat_template.jinja", "{{ bos_token }}file\n");
  EXPECT_EQ(Rendered(), "<b>file");
}

TEST_F(ChatTemplateFolder, SaysWhereThereIsNone) {
  EXPECT_EQ(ChatTemplate::Load(folder_).status().code(), StatusCode::kNotFound);
  Write("tokenizer_config.json", "{}");
  EXPECT_EQ(ChatTemplate::Load(folder_).status().code(), StatusCode::kNotFound);
}

TEST_F(ChatTemplateFolder, NamesFileAndLineOfASyntaxError) {
  Write("chat_template.jinja", "a\n{% for x %}\n");
  const Status status = ChatTemplate::Load(folder_).status();
  EXPECT_EQ(status.code(), StatusCode::kCorruptFile);
  EXPECT_NE(status.message().find("chat_template.jinja"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("line 2: {% for %}: expected 'in'"), std::string::npos)
      << status.message();
}

TEST(ChatTemplate, NamesLineAndStatementOfAnErrorAndOfRaiseException) {
  const auto compiled = ChatTemplate::Compile(
      "{% if messages %}\n{% set x = messages[0].nope.deeper %}\n{% endif %}", Value::MakeObject());
  const Status status = compiled->Render(OneMessage("x"), Value()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("line 2: {% set %}: 'dict object' has no attribute 'nope'"),
            std::string::npos)
      << status.message();
  const auto raises =
      ChatTemplate::Compile("\n\n{{ raise_exception('roles must alternate') }}", Value());
  const Status raised = raises->Render(OneMessage("x"), Value()).status();
  EXPECT_NE(raised.message().find("line 3: {{ }}: roles must alternate"), std::string::npos)
      << raised.message();
}

TEST(ChatTemplate, RefusesWhatIsNoConversation) {
  const auto compiled = ChatTemplate::Compile("x", Value::MakeObject());
  EXPECT_FALSE(compiled->Render(Value::MakeArray(), Value()).ok());
  EXPECT_FALSE(compiled->Render(Value("hello"), Value()).ok());
}

TEST(ChatTemplate, DefinesToolsAndDocumentsAsNone) {
  const auto compiled = ChatTemplate::Compile(
      "{{ tools }} {{ documents is defined }} {{ bos_token is defined }} {{ enable_thinking }}",
      Value::MakeObject());
  Value options;
  options.Set("enable_thinking", true);
  EXPECT_EQ(*compiled->Render(OneMessage("x"), options), "None True False True");
}

}  // namespace
}  // namespace octavo
