// Choosing a scheme for each layer by measurement: from a goal to a mixed recipe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "compress/bit_choice.h"
#include "compress/bit_table.h"
#include "compress/recipe.h"
#include "octavo/quantize.h"

namespace octavo {

// What the mix must keep to: one of the two.
struct BitGoal {
  std::optional<double> target_bits;  // a weight of the quantized layers at most, as stored
  std::optional<double> max_kl;       // nats at most
  std::vector<std::string> candidates = {"W4A16", "W8A16", "W8A8"};  // names of presets
  // Where the measurements are kept: read if it is there, else written. Empty: nowhere.
  std::filesystem::path sensitivities = {};
};

struct ChosenBits {
  Recipe recipe;  // says in its comment what was chosen and why
  double bits_a_weight = 0;
  double expected_kl = 0;    // the sum of the units'
  std::optional<double> kl;  // of all together; none where an earlier run's file was read
};

// Measures what each candidate costs each unit of layers (measure_bits.h), unless
// goal.sensitivities has it; chooses (bit_choice.h); makes of the choice a recipe that quantizes by
// the method of `flags`. With max_kl, what all chosen layers lose together is measured, and where
// that is above the bound, the choice is made again under one as much lower. InvalidArgument when
// no mix meets the goal, when options name no calibration data, or when the file of sensitivities
// is of other candidates.
Result<ChosenBits> ChooseBits(const BitGoal& goal, const RecipeFlags& flags,
                              const QuantizeOptions& options, const Context& context);

}  // namespace octavo
