#include "eval/prediction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace octavo {
namespace {

double KlOf(const std::vector<float>& base, const std::vector<float>& model) {
  std::vector<float> exponentials(base.size());
  const Prediction base_prediction = Predict(base, exponentials);
  return KlDivergence(base, exponentials, base_prediction, model, Predict(model, {}));
}

TEST(Prediction, KlIsTheSumOverTheVocabulary) {
  // p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), up to constants in the logits.
  const float two = std::log(2.0F);
  EXPECT_NEAR(KlOf({two, 0, 0}, {5, 5, 5 + two}), 0.25 * std::log(2.0), 1e-7);
  EXPECT_EQ(KlOf({3, 1, 2}, {3, 1, 2}), 0);
  EXPECT_NEAR(KlOf({1003, 1001, 1002}, {-3, -5, -4}), 0, 1e-12);
}

TEST(Prediction, TheMostLikelyAreFoundInOrderAndTheFirstOfEquals) {
  const Prediction prediction = Predict(std::vector<float>{1, 7, 3, 7, 9, 2, 3}, {});
  EXPECT_EQ(prediction.top, (std::array<int32_t, 5>{4, 1, 3, 2, 6}));
  EXPECT_EQ(prediction.largest, 9);
  EXPECT_NEAR(prediction.top_probability(),
              1 / (1 + 2 * std::exp(-2.0) + 2 * std::exp(-6.0) + std::exp(-7.0) + std::exp(-8.0)),
              1e-7);
  EXPECT_NEAR(prediction.log_normalizer(), 9 - std::log(prediction.top_probability()), 1e-12);
}

TEST(Prediction, TokensInCommonAreCountedWhateverTheirOrder) {
  const Prediction a = Predict(std::vector<float>{9, 8, 7, 6, 5, 0, 0}, {});
  const Prediction b = Predict(std::vector<float>{5, 0, 7, 8, 0, 9, 6}, {});
  EXPECT_EQ(CommonTopTokens(a, b), 3);
  const Prediction small = Predict(std::vector<float>{1, 2, 3}, {});
  EXPECT_EQ(small.top, (std::array<int32_t, 5>{2, 1, 0, -1, -1}));
  EXPECT_EQ(CommonTopTokens(small, small), 3);
}

TEST(Prediction, NanShowsInTheSumWhereverItIs) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Predict(std::vector<float>{kNan, 1, 2}, {}).sum));
  EXPECT_TRUE(std::isnan(Predict(std::vector<float>{1, 2, kNan}, {}).sum));
}

}  // namespace
}  // namespace octavo
