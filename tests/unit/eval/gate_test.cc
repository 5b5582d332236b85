#include "eval/gate.h"

#include <gtest/gtest.h>

#include <limits>

#include "eval/comparison.h"

namespace octavo {
namespace {

Comparison TwoModels() {
  Comparison comparison;
  comparison.models.resize(2);
  comparison.models[0].label = "good";
  comparison.models[1].label = "bad";
  comparison.lockstep.emplace();
  comparison.lockstep->models.resize(2);
  Divergence& good = comparison.lockstep->models[0].divergence;
  good.kl.mean.mean = 0.01;
  good.perplexity_ratio.mean = 1.005;
  Divergence& bad = comparison.lockstep->models[1].divergence;
  bad.kl.mean.mean = 0.03;
  bad.perplexity_ratio.mean = 1.02;
  return comparison;
}

TEST(Gate, SharesAreReadWithAndWithoutPercent) {
  EXPECT_DOUBLE_EQ(*ParseShare("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*ParseShare("0.01"), 0.01);
  EXPECT_DOUBLE_EQ(*ParseShare("0"), 0);
  EXPECT_DOUBLE_EQ(*ParseShare("250%"), 2.5);
  for (const char* wrong : {"", "%", "one", "1 %", "-1%", "0.01x", "nan", "inf", "1"})
    EXPECT_FALSE(ParseShare(wrong).ok()) << wrong;
  EXPECT_NE(ParseShare("1").status().message().find("say 1%"), std::string::npos);
}

TEST(Gate, EveryBoundIsCheckedForEveryModel) {
  const auto checks = CheckBounds({.max_kl = 0.02, .max_perplexity_increase = 0.01}, TwoModels());
  ASSERT_EQ(checks.size(), 4U);
  EXPECT_TRUE(checks[0].passed && checks[1].passed);
  EXPECT_FALSE(checks[2].passed || checks[3].passed);
  EXPECT_EQ(checks[2].model, "bad");
  EXPECT_EQ(checks[2].measured, 0.03);
  EXPECT_NE(BoundLines(checks).find("MISSED: bad: KL divergence 0.03000, at most 0.02\n"),
            std::string::npos)
      << BoundLines(checks);
  const Status status = GateStatus(checks);
  EXPECT_EQ(status.code(), StatusCode::kBoundMissed);
  EXPECT_NE(status.message().find("2 of 4"), std::string::npos);
}

TEST(Gate, ABoundIsKeptWhereItIsMetExactly) {
  const auto checks = CheckBounds({.max_kl = 0.03}, TwoModels());
  EXPECT_TRUE(GateStatus(checks).ok());
  EXPECT_TRUE(GateStatus({}).ok()) << "no bounds: nothing is missed";
}

TEST(Gate, NanKeepsNoBound) {
  Comparison comparison = TwoModels();
  comparison.lockstep->models[0].divergence.kl.mean.mean = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(CheckBounds({.max_kl = 1e9}, comparison).front().passed);
}

TEST(Gate, RecoveryIsThatOfTheFigureThatKeptLeast) {
  Comparison comparison = TwoModels();
  comparison.tasks.resize(2);
  PairedTask& task = comparison.tasks[0].emplace_back();
  task.name = "gsm8k";
  task.figures.resize(3);
  task.figures[0].recovery = 101;
  task.figures[1].metric = "exact_match";
  task.figures[1].recovery = 98.5;
  task.figures[2].recovery.reset();  // a base of zero
  comparison.tasks[1] = comparison.tasks[0];
  comparison.tasks[1][0].figures[1].recovery = 99;
  const auto checks = CheckBounds({.min_recovery = 99}, comparison);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_FALSE(checks[0].passed);
  EXPECT_EQ(checks[0].measured, 98.5);
  EXPECT_NE(checks[0].text.find("98.50 % (gsm8k exact_match)"), std::string::npos);
  EXPECT_TRUE(checks[1].passed);
}

TEST(Gate, ABoundOnWhatIsNotMeasuredIsRefused) {
  EXPECT_TRUE(CheckBoundsHaveFigures({.max_kl = 1, .min_recovery = 1}, true, true).ok());
  EXPECT_NE(CheckBoundsHaveFigures({.max_kl = 1}, false, true).message().find("--text"),
            std::string::npos);
  EXPECT_NE(CheckBoundsHaveFigures({.min_recovery = 1}, true, false).message().find("--tasks"),
            std::string::npos);
}

}  // namespace
}  // namespace octavo
