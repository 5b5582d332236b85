// Every figure of a walk in lockstep against the same figure computed from whole logits in float64.
#include "eval/lockstep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "eval/perplexity.h"
#include "runtime/load.h"
#include "support/golden_files.h"
#include "unit/eval/changed_stories.h"

namespace octavo {
namespace {

using testing::TemporaryFolder;
using testing::TestContext;

const std::filesystem::path kStories =
    std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";

// One position of one model.
struct Position {
  std::vector<double> log_probabilities;
  TokenId next = -1;  // -1: not known
  size_t window = 0;
};

std::vector<Position> PositionsOf(const Model& model, const std::vector<Window>& windows,
                                  const Context& context) {
  std::vector<Position> positions;
  WindowForward forward(model, context);
  const auto vocab = static_cast<size_t>(model.spec.vocab_size);
  for (size_t w = 0; w < windows.size(); ++w) {
    const std::vector<TokenId>& tokens = windows[w].tokens;
    EXPECT_TRUE(forward.Run(tokens).ok());
    const auto logits = forward.Logits(0, std::ssize(tokens));
    for (size_t row = static_cast<size_t>(windows[w].first_scored - 1); row < tokens.size();
         ++row) {
      const auto one = logits.subspan(row * vocab, vocab);
      double sum = 0;
      for (const float logit : one) sum += std::exp(static_cast<double>(logit));
      Position& position = positions.emplace_back();
      for (const float logit : one)
        position.log_probabilities.push_back(static_cast<double>(logit) - std::log(sum));
      position.window = w;
      if (row + 1 < tokens.size()) position.next = tokens[row + 1];
    }
  }
  return positions;
}

std::vector<size_t> ByProbability(const Position& position) {
  std::vector<size_t> order(position.log_probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return position.log_probabilities[a] > position.log_probabilities[b];
  });
  return order;
}

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const double low = std::floor(place);
  return std::lerp(values[static_cast<size_t>(low)], values[static_cast<size_t>(std::ceil(place))],
                   place - low);
}

// Windows drawn as wholes: the formula as it is written in the header, term by term.
double ClusteredError(const std::vector<double>& values, const std::vector<size_t>& windows) {
  const double mean = MeanOf(values);
  std::vector<double> residuals(windows.back() + 1);
  for (size_t i = 0; i < values.size(); ++i) residuals[windows[i]] += values[i] - mean;
  double squares = 0;
  for (const double residual : residuals) squares += residual * residual;
  const auto count = static_cast<double>(residuals.size());
  return std::sqrt(count / (count - 1) * squares) / static_cast<double>(values.size());
}

class LockstepTest : public ::testing::Test {
 protected:
  LockstepTest() {
    testing::WriteStories(changed_folder_.path(), "model.layers.2.mlp.down_proj.weight",
                          [](std::span<float> values) {
                            for (float& value : values) value = std::round(value * 16) / 16;
                          });
    base_ = LoadModel(kStories, {}, context_.context).value();
    changed_ = LoadModel(changed_folder_.path(), {}, context_.context).value();
    const Tokenizer tokenizer = Tokenizer::Load(kStories).value();
    const auto text = tokenizer.Encode(
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
        "park. One day, she saw a big, red ball. She wanted to play with it, but it was too high. "
        "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do.",
        true);
    windows_ = CutWindows(*text, {.window = 24, .stride = 16}).value();
  }

  LockstepResult Run(std::vector<NamedModel> models) {
    return Lockstep({"base", base_->model()}, models, windows_, context_.context).value();
  }

  TestContext context_;
  TemporaryFolder changed_folder_;
  std::unique_ptr<LoadedModel> base_, changed_;
  std::vector<Window> windows_;
};

TEST_F(LockstepTest, EveryFigureIsThatOfFloat64) {
  const LockstepResult result = Run({{"changed", changed_->model()}});
  const auto& [quality, divergence] = result.models.front();
  const auto base = PositionsOf(base_->model(), windows_, context_.context);
  const auto model = PositionsOf(changed_->model(), windows_, context_.context);
  std::vector<double> kl, change, base_nll, model_nll, difference;
  std::vector<size_t> kl_windows, token_windows;
  double top1 = 0, top5 = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    double sum = 0;
    for (size_t token = 0; token < base[i].log_probabilities.size(); ++token) {
      sum += std::exp(base[i].log_probabilities[token]) *
             (base[i].log_probabilities[token] - model[i].log_probabilities[token]);
    }
    kl.push_back(sum);
    kl_windows.push_back(base[i].window);
    const auto a = ByProbability(base[i]);
    const auto b = ByProbability(model[i]);
    top1 += a[0] == b[0] ? 1 : 0;
    for (size_t k = 0; k < 5; ++k) top5 += std::count(b.begin(), b.begin() + 5, a[k]) > 0 ? 0.2 : 0;
    if (base[i].next < 0) continue;
    const auto next = static_cast<size_t>(base[i].next);
    base_nll.push_back(-base[i].log_probabilities[next]);
    model_nll.push_back(-model[i].log_probabilities[next]);
    difference.push_back(model_nll.back() - base_nll.back());
    change.push_back(std::exp(-model_nll.back()) - std::exp(-base_nll.back()));
    token_windows.push_back(base[i].window);
  }
  const auto positions = static_cast<double>(base.size());
  ASSERT_EQ(result.windows, std::ssize(windows_));
  ASSERT_GT(result.windows, 3);
  ASSERT_EQ(result.positions, std::ssize(base));
  ASSERT_EQ(result.tokens, std::ssize(base_nll));

  EXPECT_GT(divergence.kl.mean.mean, 1e-3) << "the change is to be seen";
  EXPECT_NEAR(divergence.kl.mean.mean, MeanOf(kl), 1e-7);
  EXPECT_NEAR(*divergence.kl.mean.error, ClusteredError(kl, kl_windows), 1e-7);
  EXPECT_NEAR(divergence.kl.median, Percentile(kl, 0.5), 1e-6);
  EXPECT_NEAR(divergence.kl.percentile_99, Percentile(kl, 0.99), 1e-6);
  EXPECT_NEAR(divergence.kl.percentile_999, Percentile(kl, 0.999), 1e-6);
  EXPECT_NEAR(divergence.kl.largest, *std::max_element(kl.begin(), kl.end()), 1e-6);
  EXPECT_LT(divergence.same_top1, 1);
  EXPECT_NEAR(divergence.same_top1, top1 / positions, 1e-12);
  EXPECT_LT(divergence.same_top5, 1);
  EXPECT_NEAR(divergence.same_top5, top5 / positions, 1e-9);

  EXPECT_NEAR(divergence.true_token.mean, MeanOf(change), 1e-7);
  std::vector<double> squares;
  for (const double c : change) squares.push_back(c * c);
  EXPECT_NEAR(divergence.true_token.rms, std::sqrt(MeanOf(squares)), 1e-7);
  for (size_t i = 0; i < kChangePercentiles.size(); ++i)
    EXPECT_NEAR(divergence.true_token.percentiles[i], Percentile(change, kChangePercentiles[i]),
                1e-6);

  EXPECT_NEAR(result.base.nll.mean, MeanOf(base_nll), 1e-7);
  EXPECT_NEAR(quality.perplexity.mean, std::exp(MeanOf(model_nll)), 1e-5);
  EXPECT_NEAR(*quality.perplexity.error,
              std::exp(MeanOf(model_nll)) * ClusteredError(model_nll, token_windows), 1e-5);
  EXPECT_NEAR(divergence.perplexity_ratio.mean, std::exp(MeanOf(difference)), 1e-6);
  EXPECT_NEAR(*divergence.perplexity_ratio.error,
              std::exp(MeanOf(difference)) * ClusteredError(difference, token_windows), 1e-6);
}

TEST_F(LockstepTest, HistogramAndCalibrationCountEveryPosition) {
  const LockstepResult result = Run({{"changed", changed_->model()}});
  const Histogram& histogram = result.models.front().divergence.kl.histogram;
  EXPECT_EQ(histogram.counts.size(), histogram.edges.size() + 1);
  EXPECT_EQ(std::accumulate(histogram.counts.begin(), histogram.counts.end(), int64_t{0}),
            result.positions);

  const auto base = PositionsOf(base_->model(), windows_, context_.context);
  std::array<CalibrationBin, kCalibrationBins> expected = {};
  double error = 0;
  for (const Position& position : base) {
    if (position.next < 0) continue;
    const size_t top = ByProbability(position).front();
    const double probability = std::exp(position.log_probabilities[top]);
    CalibrationBin& bin = expected[static_cast<size_t>(probability * 10)];
    ++bin.positions;
    bin.probability += probability;
    bin.right += static_cast<size_t>(position.next) == top ? 1 : 0;
  }
  for (size_t i = 0; i < kCalibrationBins; ++i) {
    const CalibrationBin& found = result.base.calibration[i];
    ASSERT_EQ(found.positions, expected[i].positions) << i;
    if (found.positions == 0) continue;
    const auto count = static_cast<double>(found.positions);
    EXPECT_NEAR(found.probability, expected[i].probability / count, 1e-6) << i;
    EXPECT_NEAR(found.right, expected[i].right / count, 1e-12) << i;
    error += std::abs(expected[i].probability - expected[i].right);
  }
  EXPECT_NEAR(result.base.calibration_error, error / static_cast<double>(result.tokens), 1e-6);
}

TEST_F(LockstepTest, AModelIsNoWorseThanItself) {
  const LockstepResult result = Run({{"itself", base_->model()}});
  const Divergence& divergence = result.models.front().divergence;
  EXPECT_EQ(divergence.kl.mean.mean, 0);
  EXPECT_EQ(divergence.kl.largest, 0);
  EXPECT_EQ(divergence.same_top1, 1);
  EXPECT_EQ(divergence.same_top5, 1);
  EXPECT_EQ(divergence.true_token.rms, 0);
  EXPECT_EQ(divergence.perplexity_ratio.mean, 1);
  EXPECT_EQ(*divergence.perplexity_ratio.error, 0);
}

TEST_F(LockstepTest, SeveralModelsAreEachAsAlone) {
  const LockstepResult both = Run({{"itself", base_->model()}, {"changed", changed_->model()}});
  const LockstepResult alone = Run({{"changed", changed_->model()}});
  EXPECT_EQ(both.models[0].divergence.kl.mean.mean, 0);
  EXPECT_EQ(both.models[1].divergence.kl.mean.mean, alone.models[0].divergence.kl.mean.mean);
  EXPECT_EQ(both.models[1].quality.nll.mean, alone.models[0].quality.nll.mean);
}

TEST_F(LockstepTest, PerplexityIsThatOfTheOtherCommand) {
  const LockstepResult result = Run({{"changed", changed_->model()}});
  EXPECT_EQ(result.models.front().quality.perplexity.mean,
            Perplexity(changed_->model(), windows_, context_.context)->perplexity);
}

TEST_F(LockstepTest, OneWindowHasNoErrors) {
  windows_.resize(1);
  const LockstepResult result = Run({{"changed", changed_->model()}});
  EXPECT_FALSE(result.base.perplexity.error);
  EXPECT_FALSE(result.models.front().divergence.kl.mean.error);
}

TEST_F(LockstepTest, NanNamesTheModelAndItsFirstBlock) {
  const TemporaryFolder folder;
  testing::WriteStories(folder.path(), "model.layers.3.mlp.down_proj.weight", testing::MakeNan);
  const auto damaged = LoadModel(folder.path(), {}, context_.context).value();
  const NamedModel models[] = {{"changed", changed_->model()}, {"damaged", damaged->model()}};
  const Status status =
      Lockstep({"base", base_->model()}, models, windows_, context_.context).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("damaged: model.layers.3 computes NaN"))
      << status.message();
}

}  // namespace
}  // namespace octavo
