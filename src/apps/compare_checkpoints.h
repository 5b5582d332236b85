// What `compare` and `quantize --verify` do: load an original and models made from it, measure, and
// hold the figures to bounds.
#pragma once

#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/layer_flags.h"
#include "apps/task_flags.h"
#include "eval/comparison.h"
#include "eval/gate.h"
#include "eval/windows.h"

namespace octavo {

struct ComparisonRequest {
  std::string base;
  std::vector<std::string> models;
  std::vector<Window> windows;       // empty: no text is read
  std::string text;                  // what they are of, for people
  const TaskFlags* tasks = nullptr;  // null: none
  LayerFlags layers = {};
  bool reads_answers = false;  // in place of the windows: the right answers of the tasks
  GateBounds bounds;
  bool speed = false;       // whether to measure tokens per second
  bool provenance = false;  // whether to hash weights and read recipes
};

// All models are in memory at once.
Result<Comparison> CompareCheckpoints(const ComparisonRequest& request, const Context& context);

// --<prefix>max-kl, --<prefix>max-ppl-increase: exit code 3 where a bound is missed.
void AddGateFlags(CLI::App& app, const std::string& prefix, GateBounds* bounds);

}  // namespace octavo
