#include <gtest/gtest.h>

#include "eval/comparison.h"
#include "unit/eval/sample_comparison.h"

namespace octavo {
namespace {

using testing::SampleComparison;

TEST(ComparisonText, TheVerdictSaysWhatCannotBeToldFromChance) {
  Comparison comparison = SampleComparison(1);
  Divergence& divergence = comparison.lockstep->models[0].divergence;
  divergence.perplexity_ratio = {1.019, 0.002};
  EXPECT_EQ(Verdict(comparison, 0),
            "model-0: perplexity rises by 1.90 % (± 0.39 at 95 %); KL divergence 0.0160 nats, the "
            "same most likely token at 90.0 % of positions.");
  divergence.perplexity_ratio = {0.999, 0.002};
  EXPECT_TRUE(Verdict(comparison, 0)
                  .starts_with("model-0: perplexity falls by 0.10 %, which cannot be told from "
                               "chance (± 0.39 at 95 %);"))
      << Verdict(comparison, 0);
  divergence.perplexity_ratio.error.reset();
  EXPECT_TRUE(Verdict(comparison, 0).starts_with("model-0: perplexity falls by 0.10 %;"));
}

TEST(ComparisonText, WithoutATextTheVerdictIsThatOfTheTasks) {
  Comparison comparison = SampleComparison(1);
  comparison.lockstep.reset();
  EXPECT_EQ(Verdict(comparison, 0), "gsm8k: model-0 scores 0.8 points lower.");
}

TEST(ComparisonText, TheTableHasAColumnForEachCheckpoint) {
  const Table table = SummaryTable(SampleComparison(2));
  ASSERT_EQ(table.columns.size(), 4U);
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), 4U) << row.front().text;
  const auto& bytes = table.rows.front();
  EXPECT_EQ(bytes[1].text, "269.0");
  EXPECT_EQ(bytes[2].text, "163.0 (0.61 x)");

  Comparison tasks_alone = SampleComparison(1);
  tasks_alone.lockstep.reset();
  tasks_alone.base.speed.reset();
  EXPECT_EQ(SummaryTable(tasks_alone).rows.size(), 2U) << "bytes and bits";
}

TEST(ComparisonText, NamesDoNotBreakAMarkdownTable) {
  Comparison comparison = SampleComparison(1);
  comparison.models[0].label = "a|b<c>\n`d`";
  comparison.run.command_line = "octavo compare 'x\n# y'";
  const std::string markdown = ComparisonMarkdown(comparison);
  EXPECT_NE(markdown.find("| model | a\\|b\\<c> \\`d\\` |\n| --- | ---: | ---: |"),
            std::string::npos)
      << markdown;
  EXPECT_EQ(markdown.find("\n# y"), std::string::npos);
}

TEST(ComparisonText, LabelsAreShortWhereTheyAreDistinct) {
  const auto labels = [](std::vector<std::string> folders) { return ModelLabels(folders); };
  EXPECT_EQ(labels({"a/model", "b/w8a8/", "./c"}),
            (std::vector<std::string>{"model", "w8a8", "c"}));
  EXPECT_EQ(labels({"a/model", "b/model"}), (std::vector<std::string>{"a/model", "b/model"}));
}

TEST(ComparisonJson, HasEveryPart) {
  const Value json = ToJson(SampleComparison(2));
  EXPECT_EQ(json.Find("positions")->as_int(), 4096);
  EXPECT_EQ(json.Find("base")->Find("calibration")->as_array().size(), kCalibrationBins);
  const Value& model = json.Find("models")->as_array().at(1);
  EXPECT_EQ(model.Find("kl_histogram")->Find("counts")->as_array().size(),
            model.Find("kl_histogram")->Find("edges")->as_array().size() + 1);
  for (const char* key : {"kl_error", "kl_99.9", "same_top1", "same_top5", "perplexity_ratio",
                          "perplexity_ratio_error", "sha256", "recipe", "layers", "sensitivities"})
    EXPECT_NE(model.Find(key), nullptr) << key;
  EXPECT_EQ(model.Find("true_token_change")->Find("95%")->as_double(), 0.05);
  EXPECT_EQ(model.Find("tasks")->as_array().at(0).Find("p")->as_double(), 0.727);
  EXPECT_EQ(json.Find("bounds")->as_array().size(), 2U);
}

}  // namespace
}  // namespace octavo
