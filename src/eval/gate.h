// The gate: bounds on what a quantization may lose, for continuous integration of models.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace octavo {

struct Comparison;

struct GateBounds {
  std::optional<double> max_kl = std::nullopt;                   // mean, nats
  std::optional<double> max_perplexity_increase = std::nullopt;  // a share: 0.01
  std::optional<double> min_recovery = std::nullopt;             // percent, of every task's figures

  bool any() const { return max_kl || max_perplexity_increase || min_recovery; }
};

struct BoundCheck {
  std::string model;  // its label
  std::string bound;  // "max_kl"
  double limit = 0;
  double measured = 0;
  bool passed = false;
  std::string text;  // "KL divergence 0.0158, at most 0.02"
};

// "1%" or "0.01", as a share. InvalidArgument for anything else; without % a share is below 1.
Result<double> ParseShare(std::string_view text);

// InvalidArgument where a bound needs what will not be measured; for before the work begins.
Status CheckBoundsHaveFigures(const GateBounds& bounds, bool has_text, bool has_tasks);

// Every bound for every model; those without a figure are left out. What is not finite passes no
// bound.
std::vector<BoundCheck> CheckBounds(const GateBounds& bounds, const Comparison& comparison);

// A line for each: "passed: model: KL divergence ...".
std::string BoundLines(std::span<const BoundCheck> checks);

// BoundMissed, with the number of those that are missed.
Status GateStatus(std::span<const BoundCheck> checks);

}  // namespace octavo
