// Whole tasks on a model of 260,000 parameters: log-likelihoods, scores and figures as lm-eval had
// them.
#include "eval/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "eval/eval_report.h"
#include "eval/task_file.h"
#include "unit/eval/changed_stories.h"
#include "unit/eval/eval_data.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::ReadEvalJson;
using testing::ReadEvalRows;
using testing::Stories;
using testing::TestData;

// Scores of the first 100 documents, one row each.
void ExpectScores(const Task& task, const TaskResult& result, const std::vector<Value>& rows) {
  for (const Value& row : rows) {
    if (row.Find("task")->as_string() != task.name()) continue;
    const auto doc = static_cast<size_t>(row.Find("doc_id")->as_int());
    SCOPED_TRACE(task.name() + ", document " + std::to_string(doc));
    const Value::Array& expected = row.Find("loglikelihoods")->as_array();
    ASSERT_EQ(result.answers.at(doc).size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result.answers[doc][i].loglikelihood, expected[i].as_double(), 1e-3) << i;
      EXPECT_EQ(Value(result.answers[doc][i].is_greedy), row.Find("is_greedy")->as_array()[i]);
    }
    EXPECT_EQ(result.prompts[doc].target, *row.Find("target"));
    for (const auto& [metric, value] : result.scores[0][doc].metrics) {
      const double golden = row.Find(metric)->as_double();
      EXPECT_NEAR(value.as_double(), golden, metric == "perplexity" ? 1e-3 : 0) << metric;
    }
  }
}

// `tolerance` is relative.
void ExpectFigures(const Value& found, const Value& golden, double tolerance) {
  for (const auto& [key, value] : golden.as_object()) {
    const Value* figure = found.Find(key);
    ASSERT_NE(figure, nullptr) << key;
    if (value.is_float()) {
      EXPECT_NEAR(figure->as_double(), value.as_double(), tolerance * std::abs(value.as_double()))
          << key;
    } else {
      EXPECT_EQ(*figure, value) << key;
    }
  }
}

class ScoredTask : public ::testing::TestWithParam<const char*> {};

TEST_P(ScoredTask, ScoresAndFigures) {
  const std::string name = GetParam();
  Stories stories;
  Task task = MakeTask(name);
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  const auto result = stories.Run(task);
  ASSERT_OK(result);
  EXPECT_EQ(result->prompts.size(), 100U);
  ExpectScores(task, *result, ReadEvalRows("stories260k/" + name + "/scores.jsonl"));
  const Value json = ResultsJson({}, {&task, 1}, {&*result, 1}, {}, false);
  const Value golden = ReadEvalJson("stories260k/" + name + "/results.json");
  // exp of a mean of about 15 carries the error of the mean; so does its bootstrapped error.
  ExpectFigures(*json.Find("results")->Find(name), *golden.Find("results")->Find(name),
                name == "lambada_openai" ? 1e-4 : 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Stories260k, ScoredTask,
                         ::testing::Values("hellaswag", "arc_challenge", "lambada_openai"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(Evaluate, AGroupOfSubjects) {
  Stories stories;
  std::vector<Task> tasks;
  for (const char* name :
       {"mmlu_abstract_algebra", "mmlu_computer_security", "mmlu_world_religions"})
    tasks.push_back(MakeTask(name));
  std::vector<TaskResult> results;
  TaskGroup group{"mmlu_subset", "mmlu_subset", {}, "acc", "2"};
  const std::vector<Value> rows = ReadEvalRows("stories260k/mmlu_subset/scores.jsonl");
  for (Task& task : tasks) {
    ASSERT_OK(task.ReadData(TestData("eval/docs")));
    auto result = stories.Run(task, {.limit = 100});
    ASSERT_OK(result);
    ExpectScores(task, *result, rows);
    results.push_back(std::move(result).value());
    group.members.push_back(task.name());
  }
  const Value json = ResultsJson({}, tasks, results, {&group, 1}, false);
  const Value golden = ReadEvalJson("stories260k/mmlu_subset/results.json");
  for (const auto& [name, figures] : golden.Find("results")->as_object())
    ExpectFigures(*json.Find("results")->Find(name), figures, 1e-12);
  EXPECT_EQ(*json.Find("groups")->Find("mmlu_subset"), *json.Find("results")->Find("mmlu_subset"));
  EXPECT_EQ(*json.Find("n-shot"), *golden.Find("n-shot"));
  EXPECT_EQ(*json.Find("versions"), *golden.Find("versions"));
}

TEST(Evaluate, NoDataChangesWithWhatIsShared) {
  Stories stories;
  Task task = MakeTask("hellaswag");
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  const auto one = stories.Run(task, {.limit = 1});
  const auto many = stories.Run(task, {.limit = 7});
  ASSERT_OK(one);
  ASSERT_OK(many);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(one->answers[0][i].loglikelihood, many->answers[0][i].loglikelihood, 1e-4);
}

TEST(Evaluate, WikitextInRollingWindows) {
  Stories stories;
  Task task = MakeTask("wikitext");
  ASSERT_OK(task.SetDocuments(ReadEvalRows("wikitext/pages.jsonl")));
  const auto result = stories.Run(task);
  ASSERT_OK(result);
  const Value golden = ReadEvalRows("stories260k/wikitext/docs_512.jsonl").front();
  const double loglikelihood = golden.Find("loglikelihood")->as_double();
  EXPECT_NEAR(result->answers[0][0].loglikelihood, loglikelihood, 0.02);  // of 3,415 tokens
  const auto words = static_cast<double>(golden.Find("words")->as_int());
  EXPECT_NEAR(result->figures[0].value / std::exp(-loglikelihood / words), 1, 1e-4);
  EXPECT_FALSE(result->figures[0].error.has_value());
}

TEST(Evaluate, AnswersAreThoseOfLmEval) {
  Stories stories;
  Task task = MakeTask("gsm8k_cot");
  ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
  const auto result = stories.Run(task);
  ASSERT_OK(result);
  EXPECT_EQ(result->truncated, 8);  // a context of 512, half of it for the answer
  for (const Value& row : ReadEvalRows("stories260k/gsm8k_cot_answers.jsonl")) {
    const auto doc = static_cast<size_t>(row.Find("doc_id")->as_int());
    EXPECT_EQ(result->answers[doc][0].text, row.Find("answer")->as_string()) << doc;
    const size_t filter = row.Find("filter")->as_string() == "strict-match" ? 0 : 1;
    EXPECT_EQ(result->scores[filter][doc].filtered[0], row.Find("filtered")->as_string());
  }
}

TEST(Evaluate, NanNamesTheBlockItComesFrom) {
  const testing::TemporaryFolder folder;
  testing::WriteStories(folder.path(), "model.layers.3.mlp.down_proj.weight", testing::MakeNan);
  const testing::TestContext context;
  const auto subject = EvalSubject::Load(folder.path(), {}, context.context);
  ASSERT_OK(subject);
  Task task = MakeTask("hellaswag");
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  const Status status =
      Evaluate((*subject)->evaluated(), task, {.limit = 1}, nullptr, context.context).status();
  EXPECT_NE(status.message().find("task hellaswag: model.layers.3 computes NaN"), std::string::npos)
      << status.message();
}

TEST(Evaluate, NanInAnAnswerNamesTheBlockToo) {
  const testing::TemporaryFolder folder;
  testing::WriteStories(folder.path(), "model.layers.2.self_attn.o_proj.weight", testing::MakeNan);
  const testing::TestContext context;
  const auto subject = EvalSubject::Load(folder.path(), {}, context.context);
  ASSERT_OK(subject);
  Task task = MakeTask("gsm8k_cot");
  ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
  const Status status =
      Evaluate((*subject)->evaluated(), task, {.limit = 2}, nullptr, context.context).status();
  EXPECT_NE(status.message().find("task gsm8k_cot: model.layers.2 computes NaN"), std::string::npos)
      << status.message();
}

TEST(Evaluate, EmptyAnswersAreCounted) {
  const testing::TemporaryFolder folder;
  std::string yaml = R"(
task: my_answers
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
metric_list:
  - metric: exact_match
generation_kwargs:
  max_gen_toks: 4
  until: [)";
  // Whatever the first character is, it is a stop string.
  for (char c = ' '; c <= '~'; ++c) yaml += c == '\'' ? "\"'\"," : std::string{'\'', c, '\'', ','};
  ASSERT_OK(WriteFileAtomically(folder.path() / "my.yaml", yaml + R"("\n"])"));
  Task task = Task::Make(ReadTaskFile(folder.path() / "my.yaml").value(), std::nullopt).value();
  ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
  Stories stories;
  const auto result = stories.Run(task, {.limit = 3});
  ASSERT_OK(result);
  EXPECT_EQ(result->empty, 3);
  EXPECT_EQ(result->figures[0].value, 0);
}

TEST(Evaluate, TruncationIsCountedAndTooLongIsRefused) {
  Task task = MakeTask("hellaswag");
  ASSERT_OK(task.ReadData(TestData("eval/docs")));
  const auto result = Stories({.max_length = 40}).Run(task, {.limit = 1});
  ASSERT_OK(result);
  EXPECT_EQ(result->truncated, 4);
  const Status status = Stories({.max_length = 8}).Run(task, {.limit = 1}).status();
  EXPECT_NE(status.message().find("task hellaswag, document 0"), std::string::npos);
  EXPECT_NE(status.message().find("8 positions"), std::string::npos);
}

}  // namespace
}  // namespace octavo
