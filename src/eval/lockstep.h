// Lockstep: an original and models made from it read the same windows in one walk, and everything
// that tells them apart is gathered on the way.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "eval/windows.h"
#include "model/graph.h"

namespace octavo {

// A mean over all tokens, and its standard error where windows are drawn as wholes (tokens of one
// window are no independent draws): sqrt(W / (W - 1) sum_w (s_w - mean n_w)^2) / N, for the sums
// s_w over the n_w tokens of W windows. Nothing for one window.
struct WindowedMean {
  double mean = 0;
  std::optional<double> error = std::nullopt;
};

// Positions at which the most likely token's probability was within a tenth.
struct CalibrationBin {
  int64_t positions = 0;
  double probability = 0;  // mean, of that token
  double right = 0;        // share of positions whose next token it was
};
inline constexpr size_t kCalibrationBins = 10;

// Of one model by itself, at positions whose next token is known.
struct PredictionQuality {
  WindowedMean nll;         // nats a token
  WindowedMean perplexity;  // exp of that, its error by the delta method
  std::array<CalibrationBin, kCalibrationBins> calibration = {};
  // Mean distance of probability and share of right, weighted by positions.
  double calibration_error = 0;
};

// counts[i] values lie in [edges[i - 1], edges[i]); the first below all edges, the last above.
struct Histogram {
  std::vector<double> edges;
  std::vector<int64_t> counts;
};

struct KlSummary {
  WindowedMean mean;
  double median = 0;
  double percentile_99 = 0;
  double percentile_999 = 0;  // 99.9 %
  double largest = 0;
  Histogram histogram;  // quarters of a decade from 1e-6 to 10
};

// Shares of the change of the true token's probability, model minus base.
inline constexpr std::array kChangePercentiles = {0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99};
struct ProbabilityChange {
  double mean = 0;
  double rms = 0;
  std::array<double, kChangePercentiles.size()> percentiles = {};
};

// A model against its base. KL and agreement are of every position, the rest of those whose next
// token is known.
struct Divergence {
  KlSummary kl;          // KL(base || model), nats
  double same_top1 = 0;  // share of positions with the same most likely token
  double same_top5 = 0;  // mean share of the base's five most likely tokens among the model's five
  ProbabilityChange true_token;
  // exp of the mean difference of nll, paired: errors of the two that go together cancel.
  WindowedMean perplexity_ratio;
};

struct LockstepResult {
  struct Compared {
    PredictionQuality quality;
    Divergence divergence;
  };
  int64_t windows = 0;
  int64_t positions = 0;  // a window's from the one that predicts its first scored token on
  int64_t tokens = 0;     // of these, those whose next token is known
  double seconds = 0;
  PredictionQuality base;
  std::vector<Compared> models;  // in the order in which they were given
};

struct NamedModel {
  std::string name;  // for messages
  const Model& model;
};

// Float32 cache. Memory grows by two floats a position and model. InvalidArgument where a
// vocabulary has another size than the base's, or a model computes NaN: the model and the first
// block that does are named.
Result<LockstepResult> Lockstep(const NamedModel& base, std::span<const NamedModel> models,
                                std::span<const Window> windows, const Context& context);

// Linear interpolation between neighbours, as numpy's default; `values` is not empty and sorted.
double PercentileOfSorted(std::span<const float> values, double share);

}  // namespace octavo
