#include "eval/task_windows.h"

#include <gtest/gtest.h>

#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::Stories;
using testing::TestData;

std::string TextOf(const Tokenizer& tokenizer, std::span<const TokenId> tokens) {
  return tokenizer.Decode(tokens, /*skip_special_tokens=*/true);
}

// What is scored of a window, and what stands before.
std::pair<std::string, std::string> Parts(const Tokenizer& tokenizer, const Window& window) {
  const auto first = static_cast<size_t>(window.first_scored);
  const std::span<const TokenId> tokens(window.tokens);
  return {TextOf(tokenizer, tokens.first(first)), TextOf(tokenizer, tokens.subspan(first))};
}

std::vector<DocumentPrompt> Prompts(const Task& task, int64_t limit) {
  return BuildPrompts(task, limit, {}).value();
}

TEST(TaskWindows, OfMultipleChoiceTheRightChoiceIsScored) {
  Stories stories;
  const EvaluatedModel& model = stories.subject().evaluated();
  Task task = MakeTask("arc_challenge", 0);
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  const auto prompts = Prompts(task, 5);
  const auto windows = TaskWindows(model, task, prompts, false).value();
  ASSERT_EQ(windows.size(), prompts.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto [context, scored] = Parts(model.tokenizer, windows[i]);
    const auto right = static_cast<size_t>(prompts[i].answer.as_int());
    EXPECT_NE(scored.find(prompts[i].choices[right]), std::string::npos) << scored;
    EXPECT_TRUE(context.ends_with("Answer:")) << context;
  }
}

TEST(TaskWindows, AGenerationsTargetIsScoredBehindItsDelimiter) {
  Stories stories;
  const EvaluatedModel& model = stories.subject().evaluated();
  Task task = MakeTask("gsm8k", 0);
  ASSERT_OK(task.SetDocuments(
      {Value::Object{{"question", "How many are 2 and 3?"}, {"answer", "2 + 3 = 5\n#### 5"}}}));
  const auto windows = TaskWindows(model, task, Prompts(task, 1), false).value();
  ASSERT_EQ(windows.size(), 1U);
  const auto [context, scored] = Parts(model.tokenizer, windows[0]);
  EXPECT_TRUE(context.ends_with("Answer:")) << context;
  EXPECT_NE(scored.find("2 + 3 = 5\n#### 5"), std::string::npos) << scored;
}

TEST(TaskWindows, WhatIsTooLongLosesItsBeginning) {
  Stories stories;
  EvaluatedModel model = stories.subject().evaluated();
  Task task = MakeTask("arc_challenge", 0);
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  const auto prompts = Prompts(task, 5);
  const auto whole = TaskWindows(model, task, prompts, false).value();
  int64_t longest = 0;
  for (const Window& window : whole)
    longest = std::max(longest, std::ssize(window.tokens) - window.first_scored);
  EvaluatedModel narrow{.model = model.model,
                        .tokenizer = model.tokenizer,
                        .encoder = model.encoder,
                        .max_length = longest + 1,
                        .eos_tokens = {},
                        .eos_text = {}};
  const auto cut = TaskWindows(narrow, task, prompts, false).value();
  for (size_t i = 0; i < cut.size(); ++i) {
    ASSERT_LE(std::ssize(cut[i].tokens), longest + 1);
    const auto size = static_cast<std::ptrdiff_t>(cut[i].tokens.size());
    EXPECT_TRUE(
        std::equal(cut[i].tokens.begin(), cut[i].tokens.end(), whole[i].tokens.end() - size));
    EXPECT_EQ(std::ssize(cut[i].tokens) - cut[i].first_scored,
              std::ssize(whole[i].tokens) - whole[i].first_scored)
        << "all of the answer";
  }
}

}  // namespace
}  // namespace octavo
