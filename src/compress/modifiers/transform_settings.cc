#include "compress/modifiers/transform_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/suggest.h"
#include "compress/modifiers/quantization_settings.h"

namespace octavo {

namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Result<std::vector<std::string>> ParseRotations(const StrictObject& object,
                                                const TransformDefaults& defaults) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> given,
                          object.Strings("rotations", defaults.rotations));
  const auto same = [](const std::string& a, const std::string& b) { return Lower(a) == Lower(b); };
  for (const std::string& rotation : given) {
    const bool known = std::any_of(defaults.known_rotations.begin(), defaults.known_rotations.end(),
                                   [&](const std::string& one) { return same(one, rotation); });
    if (known) continue;
    return InvalidArgument(fmt::format(
        "{}: unknown rotation \"{}\"{}; there are {}", object.Path("rotations"), rotation,
        DidYouMean(rotation, defaults.known_rotations), fmt::join(defaults.known_rotations, ", ")));
  }
  std::vector<std::string> rotations;
  for (const std::string& known : defaults.known_rotations) {
    if (std::any_of(given.begin(), given.end(),
                    [&](const std::string& one) { return same(one, known); }))
      rotations.push_back(known);
  }
  if (rotations.empty())
    return InvalidArgument(object.Path("rotations") + " is empty, so nothing would be rotated");
  return rotations;
}

Status RefuseTraining(const StrictObject& object) {
  OCTAVO_ASSIGN_OR_RETURN(const bool learnable, object.Bool("learnable", false));
  if (learnable)
    return Unsupported(object.Path("learnable") +
                       ": rotations are not trained, here or in the library; set it to false");
  OCTAVO_ASSIGN_OR_RETURN(const bool randomize, object.Bool("randomize", false));
  if (randomize)
    return Unsupported(object.Path("randomize") +
                       ": a permutation of its own for each weight is not supported, here or in "
                       "the library; transform_type random-hadamard gives random matrices");
  return OkStatus();
}

Result<std::string> ParsePrecision(const StrictObject& object) {
  OCTAVO_ASSIGN_OR_RETURN(std::string precision, object.String("precision", "torch.float64"));
  if (!precision.starts_with("torch.")) precision = "torch." + precision;
  if (precision == "torch.float64" || precision == "torch.float32") return precision;
  return Unsupported(fmt::format(
      "{} is {}: matrices are stored as torch.float64 or torch.float32 (weights are always "
      "rotated in float64)",
      object.Path("precision"), precision));
}

}  // namespace

bool TransformSettings::Has(std::string_view rotation) const {
  return std::find(rotations.begin(), rotations.end(), rotation) != rotations.end();
}

Result<TransformUse> TransformSettings::Use(std::string_view group, TransformLocation location,
                                            bool inverse, const std::vector<std::string>& targets,
                                            const std::vector<std::string>& ignore) const {
  TransformUse use{.group = std::string(group),
                   .type = type,
                   .location = location,
                   .inverse = inverse,
                   .block = block,
                   .precision = precision};
  for (const auto& [texts, patterns] :
       {std::pair(&targets, &use.targets), std::pair(&ignore, &use.ignore)}) {
    for (const std::string& text : *texts) {
      OCTAVO_ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Make(text));
      patterns->push_back(std::move(pattern));
    }
  }
  return use;
}

Value TransformSettings::Saved() const {
  Value saved = Value::MakeObject();
  saved.Set("requires_calibration_data", false);
  saved.Set("rotations", Value::Array(rotations.begin(), rotations.end()));
  saved.Set("transform_type", type_name);
  saved.Set("randomize", false);
  saved.Set("learnable", false);
  saved.Set("precision", precision);
  if (block) saved.Set("transform_block_size", *block);
  if (seed != 0) saved.Set("seed", static_cast<int64_t>(seed));
  if (transform_config.is_object()) saved.Set("transform_config", transform_config);
  return saved;
}

std::vector<std::string> TransformKeys() {
  std::vector<std::string> keys = {"rotations", "transform_type",  "randomize",
                                   "learnable", "precision",       "transform_block_size",
                                   "seed",      "transform_config"};
  for (std::string& key : CommonModifierKeys()) keys.push_back(std::move(key));
  return keys;
}

Result<TransformSettings> ParseTransformSettings(const StrictObject& object,
                                                 const TransformDefaults& defaults, Logger& log) {
  WarnOfRetiredKeys(object, log);
  OCTAVO_RETURN_IF_ERROR(RefuseTraining(object));
  TransformSettings settings;
  OCTAVO_ASSIGN_OR_RETURN(settings.rotations, ParseRotations(object, defaults));
  OCTAVO_ASSIGN_OR_RETURN(settings.type,
                          ParseTransformType(object, "transform_type", defaults.transform_type));
  OCTAVO_ASSIGN_OR_RETURN(settings.type_name,
                          object.String("transform_type", defaults.transform_type));
  OCTAVO_ASSIGN_OR_RETURN(settings.precision, ParsePrecision(object));
  if (object.Has("transform_block_size")) {
    OCTAVO_ASSIGN_OR_RETURN(settings.block, object.Int("transform_block_size", 0));
    if (*settings.block <= 0)
      return InvalidArgument(fmt::format("{} is {}, expected a positive number",
                                         object.Path("transform_block_size"), *settings.block));
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t seed, object.Int("seed", 0));
  if (seed < 0)
    return InvalidArgument(
        fmt::format("{} is {}, expected zero or more", object.Path("seed"), seed));
  settings.seed = static_cast<uint64_t>(seed);
  if (const Value* config = object.Find("transform_config")) {
    OCTAVO_ASSIGN_OR_RETURN(const auto uses,
                            ParseTransforms(*config, object.Path("transform_config")));
    if (uses.empty())
      return InvalidArgument(object.Path("transform_config") +
                             " has no groups, so nothing would be rotated; leave it out");
    settings.transform_config = *config;
  }
  return settings;
}

}  // namespace octavo
