#include "eval/report_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/report_html.h"
#include "eval/report_plots.h"

namespace octavo {

namespace {

Cell Number(const std::optional<double>& value, std::string_view digits) {
  if (!value) return "-";
  if (!std::isfinite(*value)) return "equal";
  return {*value, fmt::format(fmt::runtime(fmt::format("{{:{}}}", digits)), *value)};
}

std::string ErrorPlot(const LayerComparison& comparison) {
  std::vector<LayerErrorSeries> series;
  for (const ComparedLayer& layer : comparison.layers) {
    if (!layer.output) continue;
    auto found = std::find_if(series.begin(), series.end(), [&](const LayerErrorSeries& one) {
      return one.name == layer.projection;
    });
    if (found == series.end()) found = series.insert(found, {layer.projection, {}});
    found->errors.emplace_back(layer.block, layer.output->relative);
  }
  return LayerErrorPlot(series);
}

std::string BlockPlot(const LayerComparison& comparison) {
  std::vector<LayerErrorSeries> series = {{"of the block alone", {}}, {"of all blocks so far", {}}};
  for (size_t i = 0; i < comparison.blocks.size(); ++i) {
    const auto block = static_cast<int64_t>(i);
    const ComparedBlock& compared = comparison.blocks[i];
    if (compared.alone) series[0].errors.emplace_back(block, compared.alone->relative);
    if (compared.accumulated) series[1].errors.emplace_back(block, compared.accumulated->relative);
  }
  return LayerErrorPlot(series);
}

Table LayersTable(const LayerComparison& comparison) {
  Table table{.key = "layers",
              .title = {},
              .columns = {{"name", "layer"},
                          {"scheme", "scheme"},
                          {"relative", "output error", true},
                          {"cosine", "cosine", true},
                          {"sqnr", "weights, dB", true},
                          {"before", "outliers", true},
                          {"after", "smoothed", true}},
              .rows = {},
              .notes = comparison.notes};
  for (const ComparedLayer& layer : comparison.layers) {
    const auto relative = layer.output ? std::optional(layer.output->relative) : std::nullopt;
    const auto cosine = layer.output ? std::optional(layer.output->cosine) : std::nullopt;
    table.rows.push_back({layer.name, layer.scheme, Number(relative, ".2e"), Number(cosine, ".5f"),
                          Number(layer.weight_sqnr_db, ".1f"), Number(layer.outliers_before, ".1f"),
                          Number(layer.outliers_after, ".1f")});
  }
  table.notes.push_back(
      "Output error: squared, as a share of the output's energy, on the same inputs. Outliers: the "
      "largest channel of the input over the median's.");
  return table;
}

Table SensitivitiesTable(const std::vector<UnitSensitivity>& sensitivities) {
  Table table{.key = "sensitivities",
              .title = "Quantized alone",
              .columns = {{"layers", "layers"}, {"kl", "KL divergence, nats", true}},
              .rows = {}};
  for (const UnitSensitivity& sensitivity : sensitivities) {
    table.rows.push_back({Cell::List(sensitivity.unit.layers, ", "),
                          {sensitivity.kl, fmt::format("{:.2e}", sensitivity.kl)}});
  }
  return table;
}

}  // namespace

std::string LayersHtml(const Comparison& comparison, size_t model) {
  std::string html;
  if (!comparison.layers.empty()) {
    const LayerComparison& layers = comparison.layers[model];
    html += "<div class=\"plots\">\n";
    html += FigureHtml("Error of each layer", ErrorPlot(layers),
                       "Squared error of the output on the same inputs, as a share of its energy.");
    html += FigureHtml("Error of each block", BlockPlot(layers), "Of the hidden states behind it.");
    html += "</div>\n" + TableHtml(LayersTable(layers), true);
  }
  if (!comparison.sensitivities.empty())
    html += TableHtml(SensitivitiesTable(comparison.sensitivities[model]), true);
  if (html.empty()) return html;
  return fmt::format("<h2>Layers of {}</h2>\n", HtmlEscape(comparison.models[model].label)) + html;
}

}  // namespace octavo
