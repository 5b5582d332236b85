#include "apps/bit_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace octavo {

void AddBitFlags(CLI::App& app, CLI::Option* recipe, CLI::Option* scheme, BitFlags* flags) {
  auto* bits = app.add_option("--target-bits", flags->goal.target_bits,
                              "Choose each layer's scheme among --candidates by what it loses: the "
                              "best mix of at most so many bits a weight, scales included")
                   ->excludes(recipe)
                   ->excludes(scheme)
                   ->check(CLI::PositiveNumber);
  app.add_option("--max-kl", flags->goal.max_kl,
                 "The same, the smallest mix whose KL divergence from the original is at most so "
                 "many nats")
      ->excludes(recipe)
      ->excludes(scheme)
      ->excludes(bits)
      ->check(CLI::PositiveNumber);
  app.add_option("--candidates", flags->candidates,
                 "Presets to choose among, separated by commas; engines serve W4A16, W8A16, W8A8 "
                 "and FP8_DYNAMIC side by side")
      ->capture_default_str();
  app.add_option("--sensitivities", flags->sensitivities,
                 "Where what the candidates lose is kept: read if the file is there, else measured "
                 "and written");
}

Result<Recipe> ChooseRecipe(const BitFlags& flags, const RecipeFlags& recipe,
                            const QuantizeOptions& options, const Context& context) {
  BitGoal goal = flags.goal;
  goal.candidates = CLI::detail::split(flags.candidates, ',');
  goal.sensitivities = flags.sensitivities;
  OCTAVO_ASSIGN_OR_RETURN(ChosenBits chosen, ChooseBits(goal, recipe, options, context));
  context.log.Info(chosen.recipe.comment);
  return std::move(chosen.recipe);
}

}  // namespace octavo
