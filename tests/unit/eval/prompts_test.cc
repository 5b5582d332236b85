// Prompts, character for character as lm-evaluation-harness wrote them.
#include "eval/prompts.h"

#include <gtest/gtest.h>

#include <map>

#include "io/sha256.h"
#include "support/temporary_folder.h"
#include "text/tokenizer.h"
#include "unit/eval/eval_data.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::ReadEvalRows;
using testing::ReadEvalText;
using testing::Smollm2Template;
using testing::SparsePool;
using testing::TestData;

TEST(Prompts, OfGsm8kInEveryVariant) {
  const ChatTemplate chat_template = Smollm2Template();
  const auto tokenizer = Tokenizer::Load(TestData("tokenizers/smollm2"));
  ASSERT_OK(tokenizer);
  std::map<std::string, std::vector<DocumentPrompt>> built;
  for (const Value& row : ReadEvalRows("gsm8k/prompts.jsonl")) {
    const std::string& name = row.Find("task")->as_string();
    const int64_t shots = row.Find("num_fewshot")->as_int();
    PromptOptions options;
    if (row.Find("apply_chat_template")->as_bool()) options.chat_template = &chat_template;
    options.fewshot_as_multiturn = row.Find("fewshot_as_multiturn")->as_bool();
    const Value& system = *row.Find("system_instruction");
    if (system.is_string()) options.system_instruction = system.as_string();
    const std::string key = name + std::to_string(shots) + WriteJson(system) +
                            (options.chat_template != nullptr ? "chat" : "") +
                            (options.fewshot_as_multiturn ? "turns" : "");
    SCOPED_TRACE(key);
    if (!built.contains(key)) {
      Task task = MakeTask(name, shots);
      ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
      if (name == "gsm8k") {
        ASSERT_OK(task.SetExamples(SparsePool("gsm8k/train_drawn.jsonl", 7473)));
      }
      built[key] = BuildPrompts(task, 8, options).value();
      ASSERT_EQ(built[key].size(), 8U);
      EXPECT_EQ(task.generation(), *row.Find("generation_kwargs"));  // the first row has it
    }
    const DocumentPrompt& prompt = built[key][static_cast<size_t>(row.Find("doc_id")->as_int())];
    if (const Value* text = row.Find("prompt")) {
      EXPECT_EQ(prompt.context, text->as_string());
    }
    EXPECT_EQ(Sha256OfText(prompt.context), row.Find("prompt_hash")->as_string());
    EXPECT_EQ(prompt.target, *row.Find("target"));
    EXPECT_EQ(std::ssize(tokenizer->Encode(prompt.context, true).value()),
              row.Find("token_count")->as_int());
  }
}

struct Variant {
  std::string file;
  std::string task;
  std::optional<int64_t> shots;
  bool chat;
};

class PromptVariants : public ::testing::TestWithParam<Variant> {};

TEST_P(PromptVariants, ContextsAndContinuations) {
  const Variant& variant = GetParam();
  const ChatTemplate chat_template = Smollm2Template();
  Task task = MakeTask(variant.task, variant.shots);
  if (variant.task == "lambada_openai" && variant.shots) {
    ASSERT_OK(task.SetExamples(SparsePool("docs/lambada_openai/test_drawn.jsonl", 5153)));
    ASSERT_OK(task.SetDocuments(ReadEvalRows("docs/lambada_openai/test.jsonl")));
  } else {
    ASSERT_OK(task.ReadData(TestData("eval/docs")));
  }
  PromptOptions options;
  if (variant.chat) options.chat_template = &chat_template;
  const auto prompts = BuildPrompts(task, 5, options);
  ASSERT_OK(prompts);
  for (const Value& row : ReadEvalRows("smollm2/variants/" + variant.file + ".jsonl")) {
    const DocumentPrompt& prompt = prompts->at(static_cast<size_t>(row.Find("doc_id")->as_int()));
    EXPECT_EQ(prompt.context, row.Find("context")->as_string());
    EXPECT_EQ(prompt.continuations.at(static_cast<size_t>(row.Find("choice")->as_int())),
              row.Find("continuation")->as_string());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Smollm2, PromptVariants,
    ::testing::Values(Variant{"arc_challenge_3shot", "arc_challenge", 3, false},
                      Variant{"arc_challenge_chat", "arc_challenge", {}, true},
                      Variant{"hellaswag_2shot", "hellaswag", 2, false},
                      Variant{"lambada_openai_2shot", "lambada_openai", 2, false},
                      Variant{"lambada_openai_chat", "lambada_openai", {}, true},
                      Variant{"mmlu_abstract_algebra_5shot", "mmlu_abstract_algebra", 5, false},
                      Variant{"mmlu_abstract_algebra_chat", "mmlu_abstract_algebra", {}, true}),
    [](const auto& instance) { return instance.param.file; });

TEST(Prompts, MoreExamplesThanThereAreAreRefused) {
  Task task = MakeTask("gsm8k_cot", 9);
  ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
  const auto prompts = BuildPrompts(task, 1, {});
  ASSERT_FALSE(prompts.ok());
  EXPECT_NE(prompts.status().message().find("gsm8k_cot, document 0"), std::string::npos);
  EXPECT_NE(prompts.status().message().find("the 8 there are"), std::string::npos);
}

}  // namespace
}  // namespace octavo
