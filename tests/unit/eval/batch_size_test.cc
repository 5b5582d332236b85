// How many answers are generated together where memory is as the test says.
#include "eval/batch_size.h"

#include <gtest/gtest.h>

#include "unit/eval/eval_data.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::ReadEvalRows;
using testing::Stories;

TEST(BatchSize, IsWhatHalfOfFreeMemoryHolds) {
  EXPECT_EQ(BatchSizeFor(100, 2000), 10);
  EXPECT_EQ(BatchSizeFor(100, 0), 1);
  EXPECT_EQ(BatchSizeFor(100, 1'000'000), 32);
  EXPECT_EQ(BatchSizeFor(100, std::nullopt), 16);
}

// stories260k: 5 layers, 4 key and value heads of 8, 512 tokens.
TEST(BatchSize, AnAnswerTakesItsStateAndARowOfLogits) {
  Stories stories;
  EXPECT_EQ(AnswerBytes(stories.subject().evaluated().model, 100),
            2 * 100 * (5 * 2 * 4 * 8 * 4) + 512 * 4);
}

TEST(BatchSize, IsMeasuredWhenATaskBegins) {
  Stories stories;
  Task task = MakeTask("gsm8k_cot");
  ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
  // The prompts fill what the model's 512 positions leave beside the 256 of the answer.
  const int64_t each = AnswerBytes(stories.subject().evaluated().model, 512);
  const auto result = stories.Run(task, {.limit = 3, .free_memory = [&] { return 2 * 2 * each; }});
  ASSERT_OK(result);
  EXPECT_EQ(result->batch_size, 2);
  const auto asked = stories.Run(task, {.limit = 3, .batch_size = 3});
  ASSERT_OK(asked);
  EXPECT_EQ(asked->batch_size, 3);
  EXPECT_EQ(asked->answers, result->answers);
}

}  // namespace
}  // namespace octavo
