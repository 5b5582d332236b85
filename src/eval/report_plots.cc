#include "eval/report_plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/report_html.h"

namespace octavo {

namespace {

constexpr double kWidth = 480;
constexpr double kHeight = 300;
constexpr double kLeft = 68;
constexpr double kRight = 12;
constexpr double kTop = 12;
constexpr double kBottom = 46;

// Colours of models; the one before is the base's.
constexpr size_t kFirstModel = 1;

struct Tick {
  double at;
  std::string label;
};

// One axis: values to places, linear or logarithmic.
class Axis {
 public:
  Axis(double low, double high, bool logarithmic)
      : low_(low), high_(high), logarithmic_(logarithmic) {}

  // 0 to 1 along the axis.
  double Place(double value) const {
    if (!logarithmic_) return (value - low_) / (high_ - low_);
    return std::log(std::max(value, low_) / low_) / std::log(high_ / low_);
  }
  std::vector<Tick> Ticks() const { return logarithmic_ ? Decades() : Steps(); }

 private:
  // Powers of ten, not more than fit.
  std::vector<Tick> Decades() const {
    const auto first = static_cast<int>(std::ceil(std::log10(low_) - 1e-9));
    const auto last = static_cast<int>(std::floor(std::log10(high_) + 1e-9));
    const int step = std::max(1, (last - first + 6) / 7);
    std::vector<Tick> ticks;
    for (int decade = first; decade <= last; decade += step)
      ticks.push_back({std::pow(10.0, decade), fmt::format("{:g}", std::pow(10.0, decade))});
    return ticks;
  }
  // 1, 2 or 5 times a power of ten.
  std::vector<Tick> Steps() const {
    const double rough = (high_ - low_) / 5;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (step < rough) step = power * factor;
    }
    std::vector<Tick> ticks;
    for (double at = std::ceil(low_ / step - 1e-9) * step; at <= high_ + step * 1e-9; at += step)
      ticks.push_back({at, fmt::format("{:g}", std::abs(at) < step * 1e-6 ? 0 : at)});
    return ticks;
  }

  double low_, high_;
  bool logarithmic_;
};

std::string Colour(size_t index) {
  return fmt::format("var(--c{})", index % kPlotColours);
}

class Plot {
 public:
  Plot(std::string_view title, std::string_view x_label, std::string_view y_label, Axis x, Axis y)
      : x_(x), y_(y) {
    svg_ = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                       kHeight, HtmlEscape(title));
    for (const Tick& tick : x_.Ticks()) {
      svg_ += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          X(tick.at), kTop, kHeight - kBottom, kHeight - kBottom + 17, tick.label);
    }
    for (const Tick& tick : y_.Ticks()) {
      svg_ += fmt::format(
          "<path class=\"grid\" d=\"M{1:.1f} {0:.1f}H{2:.1f}\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          Y(tick.at), kLeft, kWidth - kRight, kLeft - 6, Y(tick.at) + 4, tick.label);
    }
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                        (kLeft + kWidth - kRight) / 2, kHeight - 8, HtmlEscape(x_label));
    svg_ += fmt::format(
        "<text transform=\"translate(11 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        (kTop + kHeight - kBottom) / 2, HtmlEscape(y_label));
  }

  double X(double value) const { return kLeft + x_.Place(value) * (kWidth - kLeft - kRight); }
  double Y(double value) const {
    return kHeight - kBottom - y_.Place(value) * (kHeight - kTop - kBottom);
  }
  void Path(const std::string& data, size_t colour, double fill_opacity) {
    svg_ += fmt::format("<path d=\"{}\" style=\"stroke:{};fill:{};fill-opacity:{}\"/>\n", data,
                        Colour(colour), fill_opacity > 0 ? Colour(colour) : "none", fill_opacity);
  }
  void Dashed(const std::string& data) {
    svg_ += fmt::format("<path class=\"dashed\" d=\"{}\"/>\n", data);
  }
  void Dot(double x, double y, size_t colour, const std::string& hint) {
    svg_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" "
        "style=\"fill:{}\"><title>{}</title></circle>\n",
        X(x), Y(y), Colour(colour), HtmlEscape(hint));
  }
  // Dots with a line through them.
  void Line(const std::vector<std::pair<double, double>>& points, size_t colour) {
    std::string data;
    for (const auto& [x, y] : points)
      data += fmt::format("{}{:.1f} {:.1f}", data.empty() ? "M" : "L", X(x), Y(y));
    if (!data.empty()) Path(data, colour, 0);
  }
  std::string Take() { return std::move(svg_) + "</svg>\n"; }

 private:
  Axis x_, y_;
  std::string svg_;
};

// Names with their colours, the first of which is `first_colour`, below a plot.
template <typename Series>
std::string Legend(std::span<const Series> series, size_t first_colour) {
  std::string html = "<p class=\"legend\">";
  for (size_t i = 0; i < series.size(); ++i) {
    html += fmt::format("<span><i style=\"background:{}\"></i>{}</span> ", Colour(first_colour + i),
                        HtmlEscape(series[i].name));
  }
  return html + "</p>\n";
}

// Whole decades around the positive values.
Axis LogarithmicAxis(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const double value : values) {
    if (!(value > 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (high == 0) return {0.1, 1, true};
  const double first = std::pow(10.0, std::floor(std::log10(low)));
  return {first, std::max(first * 10, std::pow(10.0, std::ceil(std::log10(high)))), true};
}

}  // namespace

std::string KlHistogramPlot(std::span<const KlSeries> series) {
  double largest = 0;
  const auto shares = [](const Histogram& histogram) {
    int64_t total = 0;
    for (const int64_t count : histogram.counts) total += count;
    std::vector<double> result;
    result.reserve(histogram.counts.size());
    for (const int64_t count : histogram.counts)
      result.push_back(100 * static_cast<double>(count) / static_cast<double>(total));
    return result;
  };
  for (const KlSeries& one : series) {
    for (const double share : shares(one.histogram)) largest = std::max(largest, share);
  }
  const std::vector<double>& edges = series.front().histogram.edges;
  // The bins beyond the edges are drawn as wide as those between them.
  const double step = edges[1] / edges[0];
  Plot plot("Histogram of the KL divergence", "KL divergence, nats (logarithmic)", "% of positions",
            {edges.front() / step, edges.back() * step, true},
            {0, 1.08 * std::max(largest, 1.0), false});
  for (size_t i = 0; i < series.size(); ++i) {
    const std::vector<double> of = shares(series[i].histogram);
    std::string data = fmt::format("M{:.1f} {:.1f}", plot.X(edges.front() / step), plot.Y(0));
    for (size_t bin = 0; bin < of.size(); ++bin) {
      const double right = bin < edges.size() ? edges[bin] : edges.back() * step;
      data += fmt::format("V{:.1f}H{:.1f}", plot.Y(of[bin]), plot.X(right));
    }
    plot.Path(data + fmt::format("V{:.1f}Z", plot.Y(0)), kFirstModel + i, 0.18);
  }
  return plot.Take() + Legend(series, kFirstModel);
}

std::string CalibrationPlot(std::span<const CalibrationSeries> series) {
  Plot plot("Calibration of the probabilities", "probability of the most likely token",
            "share of times it was right", {0, 1, false}, {0, 1, false});
  plot.Dashed(
      fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", plot.X(0), plot.Y(0), plot.X(1), plot.Y(1)));
  for (size_t i = 0; i < series.size(); ++i) {
    std::vector<std::pair<double, double>> points;
    for (const CalibrationBin& bin : series[i].bins) {
      if (bin.positions > 0) points.emplace_back(bin.probability, bin.right);
    }
    plot.Line(points, i);
    for (const CalibrationBin& bin : series[i].bins) {
      if (bin.positions == 0) continue;
      plot.Dot(bin.probability, bin.right, i,
               fmt::format("{}: {:.3f}, right {:.3f}, {} positions", series[i].name,
                           bin.probability, bin.right, bin.positions));
    }
  }
  return plot.Take() + Legend(series, 0);
}

std::string SizeAgainstLossPlot(std::span<const SizeAndLoss> models) {
  std::vector<double> losses;
  double largest = 0;
  for (const SizeAndLoss& model : models) {
    losses.push_back(model.kl);
    largest = std::max(largest, model.megabytes);
  }
  Plot plot("Size against loss", "weights, MB", "mean KL, nats (logarithmic)",
            {0, 1.05 * largest, false}, LogarithmicAxis(losses));
  for (size_t i = 0; i < models.size(); ++i) {
    plot.Dot(models[i].megabytes, models[i].kl, kFirstModel + i,
             fmt::format("{}: {:.1f} MB, {:.5f} nats", models[i].name, models[i].megabytes,
                         models[i].kl));
  }
  return plot.Take() + Legend(models, kFirstModel);
}

std::string LayerErrorPlot(std::span<const LayerErrorSeries> series) {
  std::vector<double> errors;
  int64_t last_block = 1;
  for (const LayerErrorSeries& one : series) {
    for (const auto& [block, error] : one.errors) {
      errors.push_back(error);
      last_block = std::max(last_block, block);
    }
  }
  Plot plot("Error of each layer", "block", "relative squared error (logarithmic)",
            {0, static_cast<double>(last_block), false}, LogarithmicAxis(errors));
  for (size_t i = 0; i < series.size(); ++i) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [block, error] : series[i].errors)
      points.emplace_back(static_cast<double>(block), error);
    plot.Line(points, i);
    for (const auto& [block, error] : series[i].errors) {
      plot.Dot(static_cast<double>(block), error, i,
               fmt::format("block {}, {}: {:.3g}", block, series[i].name, error));
    }
  }
  return plot.Take() + Legend(series, 0);
}

}  // namespace octavo
