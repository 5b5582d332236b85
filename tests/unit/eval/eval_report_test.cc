// The results and samples files against those that lm-eval's command line wrote.
#include "eval/eval_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eval/task_list.h"
#include "unit/eval/eval_data.h"
#include "unit/eval/stories.h"

namespace octavo {
namespace {

using testing::MakeTask;
using testing::ReadEvalJson;
using testing::ReadEvalRows;
using testing::SparsePool;
using testing::Stories;
using testing::TestData;

std::vector<std::string> Keys(const Value& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.as_object()) keys.push_back(key);
  return keys;
}

// Equal but for numbers, which may differ by 1e-4 of themselves, also where they are text.
void ExpectAlike(const Value& found, const Value& golden) {
  if (golden.is_float()) {
    ASSERT_TRUE(found.is_number());
    EXPECT_NEAR(found.as_double(), golden.as_double(), 1e-4 * std::abs(golden.as_double()));
  } else if (golden.is_array() && found.is_array()) {
    ASSERT_EQ(found.as_array().size(), golden.as_array().size());
    for (size_t i = 0; i < golden.as_array().size(); ++i)
      ExpectAlike(found.as_array()[i], golden.as_array()[i]);
  } else if (golden.is_object()) {
    EXPECT_EQ(Keys(found), Keys(golden));
    for (const auto& [key, value] : golden.as_object()) {
      SCOPED_TRACE(key);
      const Value* member = found.Find(key);
      ASSERT_NE(member, nullptr);
      ExpectAlike(*member, value);
    }
  } else if (golden.is_string() && golden.as_string().starts_with("-") && found.is_string()) {
    EXPECT_NEAR(std::stod(found.as_string()), std::stod(golden.as_string()), 1e-3);
  } else {
    EXPECT_EQ(found, golden);
  }
}

// One run of 8 documents of each task, as the golden's.
class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"gsm8k", "gsm8k_cot", "hellaswag", "arc_challenge", "lambada_openai"})
      tasks_.push_back(MakeTask(name));
    for (Task& task : tasks_) {
      if (!task.name().starts_with("gsm8k")) {
        ASSERT_OK(task.ReadData(TestData("eval/docs")));
        continue;
      }
      ASSERT_OK(task.SetDocuments(ReadEvalRows("gsm8k/test.jsonl")));
      if (task.name() == "gsm8k") {
        ASSERT_OK(task.SetExamples(SparsePool("gsm8k/train_drawn.jsonl", 7473)));
      }
    }
    for (const Task& task : tasks_) {
      auto result = stories_.Run(task, {.limit = 8});
      ASSERT_OK(result);
      results_.push_back(std::move(result).value());
    }
    info_.model = "stories260k";
    info_.model_arguments.Set("dtype", "float32");
    info_.parameters = 260032;
    info_.dtype = "torch.float32";
    info_.max_length = 512;
    info_.pad = {"<unk>", 0};
    info_.eos = {"</s>", 2};
    info_.bos = {"<s>", 1};
    info_.limit = 8;
    info_.batch_size = 1;
    info_.bootstrap_iterations = 100'000;
    info_.fewshot_seed = 1234;
  }

  Stories stories_;
  std::vector<Task> tasks_;
  std::vector<TaskResult> results_;
  EvalRunInfo info_;
};

TEST_F(ReportTest, ResultsHaveLmEvalsShapeAndFigures) {
  const Value golden = ReadEvalJson("results/results.json");
  Value found = ResultsJson(info_, tasks_, results_, {}, true);
  std::vector<std::string> keys = Keys(golden);
  std::erase(keys, "groups");
  keys.insert(std::find(keys.begin(), keys.end(), "upper_git_hash"), "octavo_version");
  EXPECT_EQ(Keys(found), keys);
  for (const Task& task : tasks_) {
    SCOPED_TRACE(task.name());
    for (const char* section : {"results", "versions", "n-shot", "higher_is_better", "task_hashes"})
      ExpectAlike(*found.Find(section)->Find(task.name()),
                  *golden.Find(section)->Find(task.name()));
    Value config = *found.Find("configs")->Find(task.name());
    Value expected = *golden.Find("configs")->Find(task.name());
    EXPECT_EQ(Keys(config), Keys(expected));
    for (Value* either : {&config, &expected}) {
      either->Erase("dataset_kwargs");  // paths
      either->Find("metadata")->Erase("config_source");
      either->Erase("process_docs");  // Python's source
      either->Find("fewshot_config")->Erase("process_docs");
    }
    ExpectAlike(config, expected);
  }
  Value config = *found.Find("config");
  config.Set("model", "hf");
  ExpectAlike(config, *golden.Find("config"));
  for (const char* key : {"tokenizer_pad_token", "tokenizer_eos_token", "tokenizer_bos_token",
                          "eot_token_id", "max_length", "model_name_sanitized",
                          "system_instruction", "fewshot_as_multiturn", "chat_template_sha"})
    EXPECT_EQ(*found.Find(key), *golden.Find(key)) << key;
}

TEST_F(ReportTest, SamplesAreLmEvalsLines) {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::string& name = tasks_[i].name();
    if (name == "gsm8k_cot" || name == "arc_challenge") continue;
    const std::string lines = SamplesJsonLines(tasks_[i], results_[i]);
    std::vector<Value> found;
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);)
      found.push_back(ParseJson(line, name).value());
    EXPECT_EQ(found.size(), 8 * tasks_[i].filters().size());
    for (const Value& golden : ReadEvalRows("results/samples_" + name + ".jsonl")) {
      const auto line = std::find_if(found.begin(), found.end(), [&](const Value& sample) {
        return *sample.Find("doc_id") == *golden.Find("doc_id") &&
               *sample.Find("filter") == *golden.Find("filter");
      });
      ASSERT_NE(line, found.end());
      SCOPED_TRACE(name);
      ExpectAlike(*line, golden);
    }
  }
}

TEST(Report, TheTable) {
  const Task task = MakeTask("gsm8k");
  TaskResult result;
  result.prompts.resize(20);
  result.figures = {{"exact_match", "strict-match", 0.35, 0.10942433098048308},
                    {"exact_match", "flexible-extract", 0.4, std::nullopt}};
  EXPECT_EQ(ResultsTable(ResultsJson({}, {&task, 1}, {&result, 1}, {}, false), "results"),
            "|Tasks|Version|     Filter     |n-shot|  Metric   |   |Value |   |Stderr|\n"
            "|-----|------:|----------------|-----:|-----------|---|-----:|---|------|\n"
            "|gsm8k|      3|flexible-extract|     5|exact_match|↑  |0.4000|±  |   N/A|\n"
            "|     |       |strict-match    |     5|exact_match|↑  |0.3500|±  |0.1094|\n");
}

TEST(Report, GroupsStandAboveTheirTasks) {
  std::vector<Task> tasks;
  std::vector<TaskResult> results(2);
  for (const char* name : {"mmlu_world_religions", "mmlu_anatomy"}) {
    tasks.push_back(MakeTask(name));
    TaskResult& result = results[tasks.size() - 1];
    result.prompts.resize(2);
    result.figures = {{"acc", "none", 0.5, 0.25}};
  }
  results[1].figures[0] = {"acc", "none", 1, 0};
  const TaskGroup groups[] = {{"all", "everything", {"some"}, "acc", "2"},
                              {"some", "some", {"mmlu_world_religions", "mmlu_anatomy"}, "", "1"}};
  const Value json = ResultsJson({}, tasks, results, groups, false);
  EXPECT_EQ(ResultsTable(json, "results"),
            "|       Tasks       |Version|Filter|n-shot|Metric|   |Value |   |Stderr|\n"
            "|-------------------|------:|------|-----:|------|---|-----:|---|-----:|\n"
            "|everything         |      2|none  |     0|acc   |↑  |0.7500|±  |0.1250|\n"
            "|  - anatomy        |      1|none  |     0|acc   |↑  |1.0000|±  |0.0000|\n"
            "|  - world_religions|      1|none  |     0|acc   |↑  |0.5000|±  |0.2500|\n");
  EXPECT_EQ(Keys(*json.Find("groups")), (std::vector<std::string>{"all"}));
}

TEST(Report, ModelNamesBecomeFolders) {
  EXPECT_EQ(SanitizedModelName("/tmp/a model"), "__tmp__a model");
  EXPECT_EQ(SanitizedModelName("org/name:[x]"), "org__name__x__");
}

}  // namespace
}  // namespace octavo
