// Plots of the report: inline SVG, coloured by the page's own variables (--ink, --grid, --c0 ...).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/lockstep.h"

namespace octavo {

// The page's colours are --c0 to --c7, and begin anew behind them.
inline constexpr size_t kPlotColours = 8;

struct KlSeries {
  std::string name;
  const Histogram& histogram;
};
// Share of positions in each bin, over KL on a logarithmic axis.
std::string KlHistogramPlot(std::span<const KlSeries> series);

struct CalibrationSeries {
  std::string name;
  std::span<const CalibrationBin> bins;
};
// How often the most likely token was right, over its probability.
std::string CalibrationPlot(std::span<const CalibrationSeries> series);

struct SizeAndLoss {
  std::string name;
  double megabytes = 0;
  double kl = 0;
};
std::string SizeAgainstLossPlot(std::span<const SizeAndLoss> models);

struct LayerErrorSeries {
  std::string name;                                // of a projection
  std::vector<std::pair<int64_t, double>> errors;  // block, relative squared error
};
// Over the blocks, on a logarithmic axis.
std::string LayerErrorPlot(std::span<const LayerErrorSeries> series);

}  // namespace octavo
