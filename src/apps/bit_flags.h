// Flags that let measurement choose each layer's scheme.
#pragma once

#include <string>

#include "base/context.h"
#include "base/status.h"
#include "compress/choose_bits.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace octavo {

struct BitFlags {
  BitGoal goal;
  std::string candidates = "W4A16,W8A16,W8A8";
  std::string sensitivities;

  bool given() const { return goal.target_bits || goal.max_kl; }
};

// `recipe` and `scheme` are the flags that say the schemes themselves.
void AddBitFlags(CLI::App& app, CLI::Option* recipe, CLI::Option* scheme, BitFlags* flags);

// ChooseBits by the flags; what was chosen is logged.
Result<Recipe> ChooseRecipe(const BitFlags& flags, const RecipeFlags& recipe,
                            const QuantizeOptions& options, const Context& context);

}  // namespace octavo
