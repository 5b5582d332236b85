// Sums that a walk in lockstep gathers, and the figures they become.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/lockstep.h"
#include "eval/prediction.h"

namespace octavo {

// Sums of windows, one after another.
class WindowSums {
 public:
  void Add(double sum, int64_t count);
  void EndWindow();
  WindowedMean Mean() const;

 private:
  struct Sum {
    double sum = 0;
    int64_t count = 0;
  };
  Sum window_;
  Sum total_;
  std::vector<Sum> windows_;
};

// exp of a mean, with its error by the delta method.
WindowedMean ExpOf(const WindowedMean& logarithm);

// Of one model at one position.
struct ScoredRow {
  Prediction prediction;
  bool has_target = false;
  double nll = 0;  // of the next token
  bool right = false;
};

// What a model is seen to do by itself.
class QualitySums {
 public:
  // The rows of a piece of a window.
  void Add(std::span<const ScoredRow> rows);
  void EndWindow() { nll_.EndWindow(); }
  PredictionQuality Take() const;

 private:
  struct Bin {
    int64_t positions = 0;
    double probability = 0;
    int64_t right = 0;
  };
  WindowSums nll_;
  std::array<Bin, kCalibrationBins> bins_ = {};
};

// What sets it apart from its base.
class DivergenceSums {
 public:
  // The same rows of both, with the KL of each.
  void Add(std::span<const ScoredRow> base, std::span<const ScoredRow> model,
           std::span<const double> kl);
  void EndWindow();
  Divergence Take();

 private:
  WindowSums kl_sums_;
  WindowSums nll_difference_;
  std::vector<float> kl_;      // of each position
  std::vector<float> change_;  // of each token
  double change_sum_ = 0;
  double change_squares_ = 0;
  int64_t top1_ = 0;
  int64_t top5_ = 0;
};

}  // namespace octavo
