// Recipe: what to do to a model, step by step, as llm-compressor's YAML says it (quantization 1.3).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/value.h"
#include "compress/modifier.h"

namespace octavo {

struct Recipe {
  std::string stage = "default_stage";  // of several the last, under which all are saved
  std::vector<std::unique_ptr<Modifier>> modifiers;  // in document order
  std::vector<std::string> groups;                   // "<group>_modifiers" of each modifier
  std::string comment;  // lines that stand above it where it is saved, and are not read
};

// A recipe's text: YAML, or JSON (which is YAML), or, where `what` ends in ".md", Markdown with
// YAML as front matter. `what` names it in messages (a path). InvalidArgument for an unknown
// modifier or key (with the nearest known one), a wrong type, no modifier at all, or SmoothQuant
// after what quantizes; Unsupported for a modifier of llm-compressor that is not here yet;
// CorruptFile for broken YAML.
Result<Recipe> ParseRecipe(std::string_view text, std::string_view what, Logger& log);

// A recipe from a few flags.
struct RecipeFlags {
  std::string scheme = "W8A8";
  // In its place: schemes by name, with their targets. The group size goes to those that have one.
  std::vector<std::pair<std::string, QuantizationScheme>> schemes = {};
  bool gptq = true;                                    // else round to nearest
  bool awq = false;                                    // scale input channels before rounding
  std::optional<int64_t> group_size = std::nullopt;    // of the weights, in place of the preset's
  std::optional<double> smoothquant = std::nullopt;    // the strength; none: no smoothing
  std::optional<std::string> kv_cache = std::nullopt;  // "fp8", "int8"; none: floats
  std::vector<std::string> ignore = {"lm_head"};
};
Result<Recipe> MakeRecipe(const RecipeFlags& flags, Logger& log);

// recipe.yaml as the library saves it, in plain YAML; ParseRecipe reads it back as the same recipe.
std::string RecipeYaml(const Recipe& recipe);

}  // namespace octavo
