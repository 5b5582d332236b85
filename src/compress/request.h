// What a quantization was asked to do, in a form that can be kept and compared.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "compress/pipeline.h"
#include "compress/recipe.h"
#include "io/checkpoint.h"

namespace octavo {

// An object of everything that the output's bytes depend on: program and instruction set, recipe as
// parsed, options, sizes and times of the model's files, sha256 of the calibration data.
Result<Value> DescribeRequest(const QuantizeOptions& options, const Recipe& recipe,
                              const Checkpoint& checkpoint, Isa isa);

// A line for each thing that differs: "num_samples was 64, is 32".
std::vector<std::string> RequestDifferences(const Value& before, const Value& now);

}  // namespace octavo
