#include "eval/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include "eval/comparison.h"

namespace octavo {

namespace {

BoundCheck AtMost(const char* bound, double limit, double measured, std::string text) {
  return {.model = {},
          .bound = bound,
          .limit = limit,
          .measured = measured,
          .passed = std::isfinite(measured) && measured <= limit,
          .text = std::move(text)};
}

std::vector<BoundCheck> CheckText(const GateBounds& bounds, const Divergence& divergence) {
  std::vector<BoundCheck> checks;
  if (bounds.max_kl) {
    const double kl = divergence.kl.mean.mean;
    checks.push_back(AtMost("max_kl", *bounds.max_kl, kl,
                            fmt::format("KL divergence {:.5f}, at most {}", kl, *bounds.max_kl)));
  }
  if (bounds.max_perplexity_increase) {
    const double limit = *bounds.max_perplexity_increase;
    const double increase = divergence.perplexity_ratio.mean - 1;
    checks.push_back(
        AtMost("max_ppl_increase", limit, increase,
               fmt::format("perplexity {:+.3f} %, at most {:+g} %", 100 * increase, 100 * limit)));
  }
  return checks;
}

// Of the figure that kept least.
std::vector<BoundCheck> CheckTasks(const GateBounds& bounds, const std::vector<PairedTask>& tasks) {
  if (!bounds.min_recovery) return {};
  double least = std::numeric_limits<double>::infinity();
  std::string where;
  for (const PairedTask& task : tasks) {
    for (const PairedFigure& figure : task.figures) {
      // What a base of zero gains is no loss.
      const double recovery = figure.recovery.value_or(least);
      if (recovery >= least) continue;
      least = recovery;
      where = fmt::format("{} {}", task.name, figure.metric);
    }
  }
  return {{.model = {},
           .bound = "min_recovery",
           .limit = *bounds.min_recovery,
           .measured = least,
           .passed = least >= *bounds.min_recovery,
           .text = fmt::format("recovery {:.2f} % ({}), at least {:g} %", least, where,
                               *bounds.min_recovery)}};
}

}  // namespace

Result<double> ParseShare(std::string_view text) {
  const bool percent = text.ends_with('%');
  const std::string_view digits = text.substr(0, text.size() - (percent ? 1 : 0));
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || !std::isfinite(value) || value < 0)
    return InvalidArgument(fmt::format("\"{}\" is no share: 1% or 0.01 is expected", text));
  if (!percent && value >= 1) {
    return InvalidArgument(fmt::format("\"{}\" would be {:g} %: say {}%, or a share below 1", text,
                                       100 * value, text));
  }
  return percent ? value / 100 : value;
}

Status CheckBoundsHaveFigures(const GateBounds& bounds, bool has_text, bool has_tasks) {
  if ((bounds.max_kl || bounds.max_perplexity_increase) && !has_text) {
    return InvalidArgument(
        "bounds on KL divergence and perplexity need a text: give --text or --chats");
  }
  if (bounds.min_recovery && !has_tasks)
    return InvalidArgument("a bound on recovery needs tasks: give --tasks");
  return OkStatus();
}

std::vector<BoundCheck> CheckBounds(const GateBounds& bounds, const Comparison& comparison) {
  std::vector<BoundCheck> checks;
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    std::vector<BoundCheck> of_model;
    if (comparison.lockstep)
      of_model = CheckText(bounds, comparison.lockstep->models[i].divergence);
    if (!comparison.tasks.empty()) {
      std::vector<BoundCheck> of_tasks = CheckTasks(bounds, comparison.tasks[i]);
      std::move(of_tasks.begin(), of_tasks.end(), std::back_inserter(of_model));
    }
    for (BoundCheck& check : of_model) {
      check.model = comparison.models[i].label;
      checks.push_back(std::move(check));
    }
  }
  return checks;
}

std::string BoundLines(std::span<const BoundCheck> checks) {
  std::string lines;
  for (const BoundCheck& check : checks)
    lines +=
        fmt::format("{}: {}: {}\n", check.passed ? "passed" : "MISSED", check.model, check.text);
  return lines;
}

Status GateStatus(std::span<const BoundCheck> checks) {
  const auto missed =
      std::count_if(checks.begin(), checks.end(), [](const BoundCheck& c) { return !c.passed; });
  if (missed == 0) return OkStatus();
  return BoundMissed(fmt::format("{} of {} bounds are not kept", missed, checks.size()));
}

}  // namespace octavo
