#include "apps/verify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/text_windows.h"

namespace octavo {

namespace {

// Short: a minute for a model of a billion parameters.
constexpr int64_t kWindows = 16;
constexpr int64_t kWindow = 512;

}  // namespace

void AddVerifyFlags(CLI::App& app, VerifyFlags* flags) {
  app.add_flag("--verify", flags->on,
               "Compare the result with the original at the end, on rows of the calibration data "
               "that were not calibrated on; needs memory for both");
  app.add_option("--verify-text", flags->text, "The same, on the first windows of this text")
      ->needs("--verify");
  AddGateFlags(app, "verify-", &flags->bounds);
}

Result<ComparisonRequest> PlanVerification(const VerifyFlags& flags,
                                           const QuantizeOptions& options) {
  ComparisonRequest request;
  request.base = options.model;
  request.models = {options.out};
  request.bounds = flags.bounds;
  const int64_t window = std::min(kWindow, options.dataset.max_length);
  if (!flags.text.empty()) {
    const TextWindowFlags text{
        .text = flags.text, .windows = {.window = window, .max_windows = kWindows}, .bos = false};
    OCTAVO_ASSIGN_OR_RETURN(request.windows, ReadTextWindows(text, request.base));
    request.text =
        fmt::format("{}, {} windows of {} tokens", flags.text, request.windows.size(), window);
    return request;
  }
  if (options.calibration.empty()) {
    return InvalidArgument(
        "--verify reads rows of the calibration data, and there are none: give --verify-text FILE");
  }
  DatasetOptions rows = options.dataset;
  rows.skip = options.dataset.num_samples;
  rows.num_samples = kWindows;
  rows.max_length = window;
  auto windows = ReadRowWindows(options.calibration, rows, request.base);
  if (!windows.ok()) {
    return windows.status().Annotate(
        "--verify reads rows that are not calibrated on (--verify-text FILE instead)");
  }
  request.windows = std::move(windows).value();
  request.text = fmt::format("{} rows of {} that were not calibrated on, at most {} tokens each",
                             request.windows.size(), options.calibration.string(), window);
  return request;
}

}  // namespace octavo
