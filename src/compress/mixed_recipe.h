// A choice of schemes, layer by layer, as an ordinary recipe that one can read and edit.
#pragma once

#include <string>
#include <vector>

#include "compress/bit_choice.h"
#include "compress/bit_table.h"
#include "quant/args.h"

namespace octavo {

// The config groups of a choice: `schemes` are the table's candidates; each that was chosen gets
// its targets. The one with the most weights has "Linear", the others names and regular
// expressions, which go before it. Named by the candidates.
std::vector<std::pair<std::string, QuantizationScheme>> MixedGroups(
    const BitTable& table, const BitChoice& choice, const std::vector<QuantizationScheme>& schemes);

// Regular expressions that match these layers and no others of the model: one for each projection,
// with the numbers of its blocks ("re:model\.layers\.(0|3)\.mlp\.down_proj$").
std::vector<std::string> TargetsOf(const std::vector<std::string>& layers);

// What was chosen, in lines for a recipe's head: the bits a weight, the expected loss, how many
// units each candidate got.
std::string DescribeChoice(const BitTable& table, const BitChoice& choice);

}  // namespace octavo
