// Tasks whose goldens were made for this repository (tools/goldens/eval_tasks.py): prompts,
// log-likelihoods and scores as lm-eval had them, plain, behind examples and in a chat template.
#include <gtest/gtest.h>

#include "eval/eval_report.h"
#include "eval/sample_hashes.h"
#include "unit/eval/eval_data.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::ReadEvalJson;
using testing::ReadEvalRows;
using testing::Smollm2Template;
using testing::Stories;
using testing::TestData;

struct Variant {
  std::string name;
  int64_t num_fewshot;
  bool chat;
};
const Variant kVariants[] = {{"0shot", 0, false}, {"3shot", 3, false}, {"chat", 2, true}};

Task ReadTask(const std::string& name, const Variant& variant) {
  Task task = MakeTask(name, variant.num_fewshot);
  EXPECT_TRUE(task.ReadData(TestData("eval/docs")).ok());
  return task;
}

void ExpectPrompt(const Task& task, const DocumentPrompt& prompt, const Value& row) {
  const Value::Array& arguments = row.Find("arguments")->as_array();
  for (size_t i = 0; i < prompt.continuations.size(); ++i) {
    EXPECT_EQ(prompt.ContextOf(i), arguments.at(i).as_array()[0].as_string());
    EXPECT_EQ(prompt.continuations[i], arguments.at(i).as_array()[1].as_string());
  }
  const SampleHashes hashes = HashSample(task, prompt);
  EXPECT_EQ(hashes.doc, row.Find("doc_hash")->as_string());
  EXPECT_EQ(hashes.prompt, row.Find("prompt_hash")->as_string());
  EXPECT_EQ(hashes.target, row.Find("target_hash")->as_string());
}

class OwnTask : public ::testing::TestWithParam<const char*> {};

TEST_P(OwnTask, PromptsScoresAndFigures) {
  const std::string name = GetParam();
  const ChatTemplate chat_template = Smollm2Template();
  Stories stories;
  const std::vector<Value> rows = ReadEvalRows("own/" + name + ".jsonl");
  for (const Variant& variant : kVariants) {
    const Task task = ReadTask(name, variant);
    EvalOptions options;
    if (variant.chat) options.prompts.chat_template = &chat_template;
    const auto result = stories.Run(task, options);
    ASSERT_OK(result);
    for (const Value& row : rows) {
      if (row.Find("variant")->as_string() != variant.name) continue;
      const auto doc = static_cast<size_t>(row.Find("doc_id")->as_int());
      SCOPED_TRACE(variant.name + ", document " + std::to_string(doc));
      ExpectPrompt(task, result->prompts.at(doc), row);
      const Value::Array& golden = row.Find("filtered_resps")->as_array();
      ASSERT_EQ(result->answers[doc].size(), golden.size());
      for (size_t i = 0; i < golden.size(); ++i) {
        const RequestAnswer& answer = result->answers[doc][i];
        EXPECT_NEAR(answer.loglikelihood, golden[i].as_array()[0].as_double(), 1e-3) << i;
        EXPECT_EQ(Value(answer.is_greedy), golden[i].as_array()[1]) << i;
      }
      const Value& metrics = *row.Find("metrics");
      ASSERT_EQ(result->scores[0][doc].metrics.size(), metrics.as_object().size());
      for (const auto& [metric, value] : result->scores[0][doc].metrics)
        EXPECT_EQ(value, *metrics.Find(metric)) << metric;
    }
    if (variant.num_fewshot > 0) continue;
    const Value figures = *ReadEvalJson("own/results.json").Find(name);
    for (const MetricFigure& figure : result->figures)
      EXPECT_EQ(figure.value, figures.Find(figure.metric + ",none")->as_double()) << figure.metric;
  }
}

INSTANTIATE_TEST_SUITE_P(Stories260k, OwnTask,
                         ::testing::Values("arc_easy", "piqa", "winogrande", "boolq", "openbookqa"),
                         [](const auto& instance) { return std::string(instance.param); });

// Answers are lm-eval's of the script; what is made of them is compared, and that nothing is
// scored.
TEST(Humaneval, WritesProgramsAndNoScore) {
  const ChatTemplate chat_template = Smollm2Template();
  for (const Variant& variant : kVariants) {
    const Task task = ReadTask("humaneval", variant);
    EXPECT_FALSE(task.is_scored());
    PromptOptions options;
    if (variant.chat) options.chat_template = &chat_template;
    TaskResult result;
    result.prompts = BuildPrompts(task, 2, options).value();
    result.scores.resize(1);
    std::vector<Value> goldens;
    for (const Value& row : ReadEvalRows("own/humaneval.jsonl")) {
      if (row.Find("variant")->as_string() != variant.name) continue;
      goldens.push_back(row);
      const DocumentPrompt& prompt = result.prompts.at(goldens.size() - 1);
      ExpectPrompt(task, prompt, row);
      const std::string& answer = row.Find("resps")->as_array()[0].as_array()[0].as_string();
      result.answers.push_back({{.text = answer}});
      result.scores[0].push_back(
          ScoreDocument(task, prompt, result.answers.back(), task.filters()[0]).value());
    }
    std::istringstream lines(SamplesJsonLines(task, result));
    for (const Value& golden : goldens) {
      std::string line;
      ASSERT_TRUE(std::getline(lines, line));
      const Value sample = ParseJson(line, "samples").value();
      for (const char* key : {"target", "resps", "filtered_resps", "filter"})
        EXPECT_EQ(*sample.Find(key), *golden.Find(key)) << key;
      const Value& arguments = golden.Find("arguments")->as_array()[0];
      EXPECT_EQ(*sample.Find("arguments")->Find("gen_args_0")->Find("arg_1"),
                arguments.as_array()[1]);
      EXPECT_TRUE(sample.Find("bypass")->is_null());
    }
  }
}

}  // namespace
}  // namespace octavo
