#include "apps/layer_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace octavo {

namespace {

constexpr int64_t kRows = 10;

}  // namespace

void AddLayerFlags(CLI::App& app, LayerFlags* flags) {
  app.add_option(
         "--layers", flags->rows,
         "Compare layer by layer and block by block, and print the worst of each: 10, or so "
         "many, or all (0)")
      ->expected(0, 1)
      ->default_str(std::to_string(kRows))
      ->check(CLI::NonNegativeNumber);
  app.add_flag(
      "--sensitivity", flags->sensitivity,
      "KL divergence with only one unit of layers quantized (q/k/v; o; gate/up; down), for "
      "each");
  app.add_option("--layer-windows", flags->windows,
                 "Windows of the text that --layers and --sensitivity read")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

Status MeasureLayers(const LayerFlags& flags, LoadedModel* base,
                     std::span<LoadedModel* const> models, std::span<const Window> windows,
                     const Context& context, Comparison* comparison) {
  windows = windows.first(std::min(windows.size(), static_cast<size_t>(flags.windows)));
  if (flags.rows) {
    for (const LoadedModel* model : models) {
      OCTAVO_ASSIGN_OR_RETURN(LayerComparison layers,
                              CompareLayers(*base, *model, windows, context));
      comparison->layers.push_back(std::move(layers));
    }
  }
  if (flags.sensitivity) {
    int64_t tokens = 0;
    for (const Window& window : windows) tokens += std::ssize(window.tokens);
    OCTAVO_ASSIGN_OR_RETURN(
        comparison->sensitivities,
        MeasureSensitivities(base, models, windows, {.tokens = tokens, .positions = 512}, context));
  }
  return OkStatus();
}

std::string LayerText(const LayerFlags& flags, const Comparison& comparison, size_t model) {
  const int64_t rows = flags.rows.value_or(kRows);
  std::string text;
  if (flags.any() && comparison.models.size() > 1)
    text += "\n" + comparison.models[model].label + "\n";
  if (flags.rows) text += "\n" + LayerTable(comparison.layers[model], rows);
  if (flags.sensitivity) text += "\n" + SensitivityTable(comparison.sensitivities[model], rows);
  return text;
}

}  // namespace octavo
