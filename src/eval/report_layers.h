// The report's part on layers: where a model loses what it loses.
#pragma once

#include <string>

#include "eval/comparison.h"

namespace octavo {

// Plots by projection and block, and a table of all layers; empty where nothing of the kind was
// measured.
std::string LayersHtml(const Comparison& comparison, size_t model);

}  // namespace octavo
