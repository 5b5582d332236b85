// Comparison: all that was measured of an original and models made from it, in one struct that
// every output (table, JSON, Markdown, page) is written from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "eval/compared_model.h"
#include "eval/gate.h"
#include "eval/layer_comparison.h"
#include "eval/lockstep.h"
#include "eval/paired_tasks.h"
#include "eval/sensitivity.h"
#include "inspect/table.h"

namespace octavo {

// How it was run.
struct ComparisonRun {
  std::string version;      // of octavo
  std::string environment;  // for people: instruction set, threads
  std::string command_line;
  std::string date;  // for people
};

struct Comparison {
  ComparisonRun run;
  std::string text;  // what was read, for people: "wiki.test.raw, 40 windows of 512 tokens"
  ComparedModel base;
  std::vector<ComparedModel> models;
  std::optional<LockstepResult> lockstep;      // its models are those above
  std::vector<std::vector<PairedTask>> tasks;  // of each model; empty: none was run
  // Of each model; empty: not asked for.
  std::vector<LayerComparison> layers;
  std::vector<std::vector<UnitSensitivity>> sensitivities;
  std::vector<BoundCheck> bounds;  // in the order of the bounds, models within
};

// The whole structure.
Value ToJson(const Comparison& comparison);

// A row for each figure, a column for each checkpoint.
Table SummaryTable(const Comparison& comparison);

// A row for each figure of each task: both scores, recovery, test and interval; and
// its sentence below.
Table TasksTable(const Comparison& comparison, size_t model);

// One sentence on a model: what it lost, and whether that can be told from chance. By the
// text, where one was read, else by the tasks.
std::string Verdict(const Comparison& comparison, size_t model);

// A block for a model card.
std::string ComparisonMarkdown(const Comparison& comparison);

}  // namespace octavo
