#include "eval/lockstep_sums.h"

#include <algorithm>
#include <cmath>

namespace octavo {

namespace {

Histogram KlHistogram(std::span<const float> sorted) {
  constexpr int kFirstDecade = -6;
  constexpr int kLastDecade = 1;
  constexpr int kPerDecade = 4;
  Histogram histogram;
  for (int i = kFirstDecade * kPerDecade; i <= kLastDecade * kPerDecade; ++i)
    histogram.edges.push_back(std::pow(10.0, static_cast<double>(i) / kPerDecade));
  auto first = sorted.begin();
  for (const double edge : histogram.edges) {
    const auto last = std::lower_bound(first, sorted.end(), edge, [](float value, double e) {
      return static_cast<double>(value) < e;
    });
    histogram.counts.push_back(last - first);
    first = last;
  }
  histogram.counts.push_back(sorted.end() - first);
  return histogram;
}

}  // namespace

double PercentileOfSorted(std::span<const float> values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  const double low = static_cast<double>(values[below]);
  return low + (place - static_cast<double>(below)) * (static_cast<double>(values[above]) - low);
}

void WindowSums::Add(double sum, int64_t count) {
  window_.sum += sum;
  window_.count += count;
  total_.sum += sum;
  total_.count += count;
}

void WindowSums::EndWindow() {
  windows_.push_back(window_);
  window_ = {};
}

WindowedMean WindowSums::Mean() const {
  WindowedMean result;
  const auto tokens = static_cast<double>(total_.count);
  result.mean = total_.sum / tokens;
  if (windows_.size() < 2) return result;
  double squares = 0;
  for (const Sum& window : windows_) {
    const double residual = window.sum - result.mean * static_cast<double>(window.count);
    squares += residual * residual;
  }
  const auto windows = static_cast<double>(windows_.size());
  result.error = std::sqrt(windows / (windows - 1) * squares) / tokens;
  return result;
}

WindowedMean ExpOf(const WindowedMean& logarithm) {
  WindowedMean result{.mean = std::exp(logarithm.mean)};
  if (logarithm.error) result.error = result.mean * *logarithm.error;
  return result;
}

void QualitySums::Add(std::span<const ScoredRow> rows) {
  double nll = 0;
  int64_t tokens = 0;
  for (const ScoredRow& row : rows) {
    if (!row.has_target) continue;
    nll += row.nll;
    ++tokens;
    const double probability = row.prediction.top_probability();
    const auto bin = static_cast<size_t>(probability * static_cast<double>(kCalibrationBins));
    Bin& place = bins_[std::min(bin, kCalibrationBins - 1)];
    ++place.positions;
    place.probability += probability;
    place.right += row.right ? 1 : 0;
  }
  nll_.Add(nll, tokens);
}

PredictionQuality QualitySums::Take() const {
  PredictionQuality quality;
  quality.nll = nll_.Mean();
  quality.perplexity = ExpOf(quality.nll);
  int64_t tokens = 0;
  double distance = 0;
  for (size_t i = 0; i < kCalibrationBins; ++i) {
    if (bins_[i].positions == 0) continue;
    const auto positions = static_cast<double>(bins_[i].positions);
    const auto right = static_cast<double>(bins_[i].right);
    quality.calibration[i] = {bins_[i].positions, bins_[i].probability / positions,
                              right / positions};
    tokens += bins_[i].positions;
    distance += std::abs(bins_[i].probability - right);
  }
  quality.calibration_error = distance / static_cast<double>(tokens);
  return quality;
}

void DivergenceSums::Add(std::span<const ScoredRow> base, std::span<const ScoredRow> model,
                         std::span<const double> kl) {
  double kl_sum = 0;
  double difference = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    kl_sum += kl[i];
    kl_.push_back(static_cast<float>(kl[i]));
    top1_ += base[i].prediction.top.front() == model[i].prediction.top.front() ? 1 : 0;
    top5_ += CommonTopTokens(base[i].prediction, model[i].prediction);
    if (!base[i].has_target) continue;
    ++tokens;
    difference += model[i].nll - base[i].nll;
    const double change = std::exp(-model[i].nll) - std::exp(-base[i].nll);
    change_.push_back(static_cast<float>(change));
    change_sum_ += change;
    change_squares_ += change * change;
  }
  kl_sums_.Add(kl_sum, std::ssize(base));
  nll_difference_.Add(difference, tokens);
}

void DivergenceSums::EndWindow() {
  kl_sums_.EndWindow();
  nll_difference_.EndWindow();
}

Divergence DivergenceSums::Take() {
  Divergence result;
  const auto positions = static_cast<double>(kl_.size());
  const auto tokens = static_cast<double>(change_.size());
  std::sort(kl_.begin(), kl_.end());
  result.kl = {.mean = kl_sums_.Mean(),
               .median = PercentileOfSorted(kl_, 0.5),
               .percentile_99 = PercentileOfSorted(kl_, 0.99),
               .percentile_999 = PercentileOfSorted(kl_, 0.999),
               .largest = static_cast<double>(kl_.back()),
               .histogram = KlHistogram(kl_)};
  result.same_top1 = static_cast<double>(top1_) / positions;
  result.same_top5 = static_cast<double>(top5_) / (positions * static_cast<double>(kTopTokens));
  std::sort(change_.begin(), change_.end());
  result.true_token.mean = change_sum_ / tokens;
  result.true_token.rms = std::sqrt(change_squares_ / tokens);
  for (size_t i = 0; i < kChangePercentiles.size(); ++i)
    result.true_token.percentiles[i] = PercentileOfSorted(change_, kChangePercentiles[i]);
  result.perplexity_ratio = ExpOf(nll_difference_.Mean());
  return result;
}

}  // namespace octavo
