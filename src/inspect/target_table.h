// Tables of where a checkpoint runs: a verdict for each engine and machine, and what is to be known
// about it.
#pragma once

#include <span>
#include <vector>

#include "inspect/engine.h"
#include "inspect/table.h"

namespace octavo {

// "targets": machines by engines, with numbers of findings; "findings": engine, outcome and what
// happens, what to do, where that is written; "rows": which row of each engine's decision table
// takes the layers.
std::vector<Table> TargetTables(std::span<const Subject> subjects, const ModelFacts& facts);

// For each engine with a decision table of its own, its rows down to the one that takes the
// subject, each with what it asks for in vain; once for all machines on which they are the same.
std::vector<Table> DecisionTables(const Subject& subject);

}  // namespace octavo
