#include "eval/paired_tasks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/eval/stories.h"

namespace octavo {
namespace {

// acc and acc_norm of documents of which the first `right` are right.
TaskResult Accuracies(int64_t documents, int64_t right) {
  TaskResult result;
  result.scores.resize(1);
  for (int64_t i = 0; i < documents; ++i) {
    const double value = i < right ? 1 : 0;
    result.scores[0].push_back({.filtered = {}, .metrics = {{"acc", value}, {"acc_norm", 1.0}}});
  }
  return result;
}

std::vector<PairedTask> Pair(const std::string& task, const TaskResult& base,
                             const TaskResult& model) {
  ThreadPool pool(2);
  const Task tasks[] = {testing::MakeTask(task)};
  const TaskResult bases[] = {base};
  const TaskResult models[] = {model};
  return PairTasks({.tasks = tasks, .groups = {}, .base = bases, .model = models}, "W8A8", pool);
}

TEST(PairedTasks, AFewAnswersLostCannotBeToldFromChance) {
  const auto paired = Pair("hellaswag", Accuracies(250, 100), Accuracies(250, 98));
  ASSERT_EQ(paired.size(), 1U);
  EXPECT_EQ(paired[0].documents, 250);
  const PairedFigure& figure = paired[0].figures.at(0);
  EXPECT_EQ(figure.metric, "acc");
  EXPECT_EQ(figure.base, 0.4);
  EXPECT_DOUBLE_EQ(*figure.recovery, 98);
  EXPECT_EQ(figure.mcnemar->only_base, 2);
  EXPECT_EQ(figure.mcnemar->only_model, 0);
  EXPECT_EQ(figure.mcnemar->p, 0.5);
  EXPECT_EQ(figure.sentence,
            "W8A8 scores 0.8 points lower; with 250 questions a difference below 2.4 cannot be "
            "told from chance");
  EXPECT_LE(figure.difference.low, -0.008);
  EXPECT_EQ(figure.difference.high, 0);

  const PairedFigure& same = paired[0].figures.at(1);
  EXPECT_EQ(*same.recovery, 100);
  EXPECT_EQ(same.mcnemar->p, 1);
  EXPECT_TRUE(same.sentence.starts_with("W8A8 scores the same")) << same.sentence;
}

TEST(PairedTasks, ManyAnswersLostAreMoreThanChance) {
  const auto paired = Pair("hellaswag", Accuracies(250, 100), Accuracies(250, 90));
  EXPECT_NEAR(paired[0].figures[0].mcnemar->p, 2.0 / 1024, 1e-12);
  EXPECT_EQ(
      paired[0].figures[0].sentence,
      "W8A8 scores 4.0 points lower; with 250 questions that is more than chance (p = 0.002)");
  EXPECT_LT(paired[0].figures[0].difference.high, 0);
}

TEST(PairedTasks, ABaseOfZeroHasNoRecovery) {
  EXPECT_FALSE(Pair("hellaswag", Accuracies(9, 0), Accuracies(9, 3))[0].figures[0].recovery);
  EXPECT_EQ(Pair("hellaswag", Accuracies(9, 0), Accuracies(9, 0))[0].figures[0].recovery, 100);
}

// Articles of 100 words each, whose log-likelihoods are -300 and a little.
TaskResult Articles(double lost) {
  TaskResult result;
  result.scores.resize(1);
  for (int i = 0; i < 20; ++i) {
    const Value value = Value::Array{-300.0 - 10 * (i % 5) - lost, int64_t{100}};
    result.scores[0].push_back(
        {.filtered = {},
         .metrics = {
             {"word_perplexity", value}, {"byte_perplexity", value}, {"bits_per_byte", value}}});
  }
  return result;
}

TEST(PairedTasks, PerplexitiesAreBootstrappedInPairs) {
  const auto paired = Pair("wikitext", Articles(0), Articles(1));
  const PairedFigure& figure = paired[0].figures[0];
  EXPECT_EQ(figure.metric, "word_perplexity");
  EXPECT_FALSE(figure.mcnemar);
  EXPECT_NEAR(figure.base, std::exp(3.2), 1e-9);
  EXPECT_NEAR(*figure.recovery, 100 * std::exp(-0.01), 1e-9) << "lower is better";
  // Every article lost the same: the pairs' spread is that of the perplexity itself, not of
  // articles against one another.
  const double difference = figure.model - figure.base;
  EXPECT_LT(figure.difference.low, difference);
  EXPECT_GT(figure.difference.low, 0.9 * difference);
  EXPECT_LT(figure.difference.high, 1.1 * difference);
  EXPECT_TRUE(figure.sentence.starts_with("W8A8's word_perplexity is 0.2466 higher"))
      << figure.sentence;
}

TEST(PairedTasks, AGroupIsTheDocumentsOfItsTasks) {
  ThreadPool pool(1);
  const std::string names[] = {"mmlu_stem"};
  TaskSelection selection = SelectTasks(names, std::nullopt).value();
  ASSERT_GT(selection.tasks.size(), 2U);
  std::vector<TaskResult> base, model;
  for (size_t i = 0; i < selection.tasks.size(); ++i) {
    base.push_back(Accuracies(10, 5));
    model.push_back(Accuracies(10, i == 0 ? 1 : 5));
  }
  const auto paired = PairTasks(
      {.tasks = selection.tasks, .groups = selection.groups, .base = base, .model = model}, "W8A8",
      pool);
  ASSERT_EQ(paired.size(), selection.tasks.size() + 1);
  EXPECT_EQ(paired.back().name, "mmlu_stem");
  EXPECT_EQ(paired.back().documents, 10 * std::ssize(selection.tasks));
  EXPECT_EQ(paired.back().figures.at(0).mcnemar->only_base, 4);
}

}  // namespace
}  // namespace octavo
