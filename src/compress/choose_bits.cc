#include "compress/choose_bits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "compress/measure_bits.h"
#include "compress/mixed_recipe.h"

namespace octavo {

namespace {

constexpr int kMaxTightenings = 6;

Status CheckGoal(const BitGoal& goal, const QuantizeOptions& options) {
  if (goal.target_bits.has_value() == goal.max_kl.has_value())
    return InvalidArgument("give either --target-bits or --max-kl, not both");
  if (goal.candidates.empty()) return InvalidArgument("--candidates: name at least one preset");
  if (options.calibration.empty()) {
    return InvalidArgument(
        "bits are chosen by what layers lose on data: give --calibration FILE (rows with "
        "\"messages\", \"conversations\", \"text\" or \"input_ids\")");
  }
  return OkStatus();
}

Status CheckTable(const BitTable& table, const BitGoal& goal, const RecipeFlags& flags) {
  const std::string what = goal.sensitivities.string();
  if (table.candidates != goal.candidates) {
    return InvalidArgument(
        fmt::format("{} is of the candidates {}, not {}: give --candidates {}, or another file",
                    what, fmt::join(table.candidates, ","), fmt::join(goal.candidates, ","),
                    fmt::join(table.candidates, ",")));
  }
  if (table.group_size != flags.group_size.value_or(0)) {
    return InvalidArgument(fmt::format(
        "{} was measured with --group-size {}, not {} (0: the presets' own): give another file",
        what, table.group_size, flags.group_size.value_or(0)));
  }
  return OkStatus();
}

bool HasFile(const BitGoal& goal) {
  return !goal.sensitivities.empty() && std::filesystem::exists(goal.sensitivities);
}

Result<BitTable> ReadTable(const BitGoal& goal, const RecipeFlags& flags) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(goal.sensitivities, int64_t{64} << 20));
  OCTAVO_ASSIGN_OR_RETURN(BitTable table, ParseBitTable(text, goal.sensitivities.string()));
  OCTAVO_RETURN_IF_ERROR(CheckTable(table, goal, flags));
  return table;
}

Result<BitChoice> ChooseForSize(const BitTable& table, double target_bits) {
  const auto weights = static_cast<double>(table.weights());
  const auto options = table.Options();
  auto choice = ChooseLeastLoss(options, std::llround(target_bits * weights));
  if (choice.ok()) return choice;
  const auto smallest = ChooseLeastBits(options, std::numeric_limits<double>::infinity());
  return InvalidArgument(fmt::format(
      "--target-bits {}: the smallest mix of {} has {:.3f} bits a weight, scales included; add a "
      "smaller candidate (W3A16)",
      target_bits, fmt::join(table.candidates, ", "),
      static_cast<double>(smallest->bits) / weights));
}

// `models` may be null: then the sum of the units' losses is all there is.
Result<BitChoice> ChooseForLoss(const BitTable& table, double max_kl, CandidateModels* models,
                                const Context& context, std::optional<double>* together) {
  const auto options = table.Options();
  double bound = max_kl;
  for (int i = 0;; ++i) {
    auto choice = ChooseLeastBits(options, bound);
    if (!choice.ok()) {
      return choice.status().Annotate(
          fmt::format("--max-kl {} (a larger candidate may be missing: {})", max_kl,
                      fmt::join(table.candidates, ", ")));
    }
    if (models == nullptr) return choice;
    OCTAVO_ASSIGN_OR_RETURN(*together, models->Divergence(table, *choice, context));
    if (**together <= max_kl || i == kMaxTightenings) return choice;
    bound = std::min(bound, choice->kl) * std::max(0.5, 0.98 * max_kl / **together);
  }
}

Result<std::vector<QuantizationScheme>> SchemesOf(const BitTable& table) {
  std::vector<QuantizationScheme> schemes;
  for (const std::string& name : table.candidates) {
    OCTAVO_ASSIGN_OR_RETURN(QuantizationScheme scheme, PresetScheme(name, {}));
    schemes.push_back(std::move(scheme));
  }
  return schemes;
}

}  // namespace

Result<ChosenBits> ChooseBits(const BitGoal& goal, const RecipeFlags& flags,
                              const QuantizeOptions& options, const Context& context) {
  OCTAVO_RETURN_IF_ERROR(CheckGoal(goal, options));
  BitTable table;
  std::unique_ptr<CandidateModels> models;
  if (HasFile(goal)) {
    OCTAVO_ASSIGN_OR_RETURN(table, ReadTable(goal, flags));
  } else {
    OCTAVO_ASSIGN_OR_RETURN(models,
                            CandidateModels::Make(goal.candidates, flags, options, context));
    OCTAVO_ASSIGN_OR_RETURN(table, models->Measure(context));
    if (!goal.sensitivities.empty()) {
      OCTAVO_RETURN_IF_ERROR(
          WriteFileAtomically(goal.sensitivities, WriteJson(ToJson(table), {.indent = 1}) + "\n"));
    }
  }
  ChosenBits chosen;
  BitChoice choice;
  if (goal.target_bits) {
    OCTAVO_ASSIGN_OR_RETURN(choice, ChooseForSize(table, *goal.target_bits));
    if (models != nullptr) {
      OCTAVO_ASSIGN_OR_RETURN(chosen.kl, models->Divergence(table, choice, context));
    }
  } else {
    OCTAVO_ASSIGN_OR_RETURN(choice,
                            ChooseForLoss(table, *goal.max_kl, models.get(), context, &chosen.kl));
  }
  OCTAVO_ASSIGN_OR_RETURN(const auto schemes, SchemesOf(table));
  RecipeFlags mixed = flags;
  mixed.schemes = MixedGroups(table, choice, schemes);
  OCTAVO_ASSIGN_OR_RETURN(chosen.recipe, MakeRecipe(mixed, context.log));
  chosen.recipe.comment = DescribeChoice(table, choice);
  if (chosen.kl) {
    chosen.recipe.comment +=
        fmt::format("All of them together, measured before quantizing: KL {:.4g}.\n", *chosen.kl);
  }
  chosen.bits_a_weight = static_cast<double>(choice.bits) / static_cast<double>(table.weights());
  chosen.expected_kl = choice.kl;
  return chosen;
}

}  // namespace octavo
