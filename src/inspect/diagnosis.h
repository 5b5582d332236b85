// Diagnosis: everything that is wrong with a checkpoint's tensors and patterns, not only the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/table.h"

namespace octavo {

struct Inspection;

enum class ProblemKind : uint8_t {
  kMissing,      // a tensor that a layer needs
  kSurplus,      // a tensor that nothing would use
  kShape,        // a tensor of another shape than expected
  kDType,        // likewise
  kUnsupported,  // something declared that cannot be computed here
  kPattern,      // a target or ignore entry that matches nothing
  kFused,        // layers that engines run as one, declared differently
  kUnknown,      // a tensor of no module of the model: a warning, it may be another program's
};

struct Problem {
  ProblemKind kind = ProblemKind::kMissing;
  std::string where;  // a tensor, a layer, a pattern
  std::string text;   // found and expected, and what follows

  // The model cannot be loaded as it is.
  bool is_error() const { return kind <= ProblemKind::kUnsupported; }
};

// Every problem of the modules that the inspection lists, in their order, then of the config.
std::vector<Problem> Diagnose(const Inspection& inspection);

// Columns severity, kind, where, what.
Table ProblemTable(const std::vector<Problem>& problems);

}  // namespace octavo
