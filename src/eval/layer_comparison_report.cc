#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "eval/layer_comparison.h"

namespace octavo {

namespace {

// JSON has no infinity.
Value Finite(double value) {
  return std::isfinite(value) ? Value(value) : Value(nullptr);
}

Value ToJson(const std::optional<OutputError>& error) {
  if (!error) return nullptr;
  return Value::Object{{"relative_squared", Finite(error->relative)}, {"cosine", error->cosine}};
}

// Equal weights have no noise; what is not comparable has no figure either.
std::string SqnrText(const std::optional<double>& sqnr) {
  if (!sqnr) return "-";
  return std::isfinite(*sqnr) ? fmt::format("{:.1f}", *sqnr) : "equal";
}

double ErrorOf(const std::optional<OutputError>& error) {
  return error ? error->relative : -1;
}

// Indices by error, largest first.
template <typename T, typename Error>
std::vector<size_t> ByError(const std::vector<T>& items, const Error& error) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return error(items[a]) > error(items[b]); });
  return order;
}

std::string ErrorColumns(const std::optional<OutputError>& error) {
  if (!error) return fmt::format("{:>10} {:>9}", "-", "-");
  return fmt::format("{:>10.2e} {:>9.5f}", error->relative, error->cosine);
}

}  // namespace

Value ToJson(const LayerComparison& comparison) {
  Value::Array layers;
  for (const ComparedLayer& layer : comparison.layers) {
    layers.push_back(Value::Object{
        {"name", layer.name},
        {"block", layer.block},
        {"projection", layer.projection},
        {"scheme", layer.scheme.empty() ? Value(nullptr) : Value(layer.scheme)},
        {"output_error", ToJson(layer.output)},
        {"weight_sqnr_db", layer.weight_sqnr_db ? Finite(*layer.weight_sqnr_db) : Value(nullptr)},
        {"outliers_before", Finite(layer.outliers_before)},
        {"outliers_after", Finite(layer.outliers_after)}});
  }
  Value::Array blocks;
  for (const ComparedBlock& block : comparison.blocks) {
    blocks.push_back(Value::Object{{"name", block.name},
                                   {"alone", ToJson(block.alone)},
                                   {"accumulated", ToJson(block.accumulated)}});
  }
  return Value::Object{{"positions", comparison.positions},
                       {"layers", std::move(layers)},
                       {"blocks", std::move(blocks)},
                       {"notes", Value::Array(comparison.notes.begin(), comparison.notes.end())}};
}

std::string LayerTable(const LayerComparison& comparison, int64_t rows) {
  const auto limit = [&](size_t size) {
    return rows == 0 ? size : std::min(size, static_cast<size_t>(rows));
  };
  size_t width = 5;
  for (const ComparedLayer& layer : comparison.layers) width = std::max(width, layer.name.size());
  std::string text = fmt::format("{:<{}} {:>10} {:>9} {:>9} {:>20}  {}\n", "layer", width, "error",
                                 "cosine", "SQNR, dB", "outliers", "scheme");
  const auto layers =
      ByError(comparison.layers, [](const ComparedLayer& layer) { return ErrorOf(layer.output); });
  for (size_t i = 0; i < limit(layers.size()); ++i) {
    const ComparedLayer& layer = comparison.layers[layers[i]];
    text +=
        fmt::format("{:<{}} {} {:>9} {:>20}  {}\n", layer.name, width, ErrorColumns(layer.output),
                    SqnrText(layer.weight_sqnr_db),
                    fmt::format("{:.3g} -> {:.3g}", layer.outliers_before, layer.outliers_after),
                    layer.scheme.empty() ? "not quantized" : layer.scheme);
  }
  text +=
      fmt::format("{:<{}} {:>20} {:>20}\n", "block", width, "given the original's", "accumulated");
  const auto blocks =
      ByError(comparison.blocks, [](const ComparedBlock& block) { return ErrorOf(block.alone); });
  for (size_t i = 0; i < limit(blocks.size()); ++i) {
    const ComparedBlock& block = comparison.blocks[blocks[i]];
    text += fmt::format("{:<{}} {} {}\n", block.name, width, ErrorColumns(block.alone),
                        ErrorColumns(block.accumulated));
  }
  for (const std::string& note : comparison.notes) text += note + "\n";
  return text;
}

}  // namespace octavo
