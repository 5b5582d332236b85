#include "compress/recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "base/yaml.h"
#include "compress/modifiers/quantization_settings.h"

namespace octavo {

#define OCTAVO_MODIFIER(record) extern const ModifierClass record;
#include "compress/modifiers.inc"
#undef OCTAVO_MODIFIER

namespace {

#define OCTAVO_MODIFIER(record) &record,
const ModifierClass* const kModifierClasses[] = {
#include "compress/modifiers.inc"
};
#undef OCTAVO_MODIFIER

// The library's classes that are not here yet.
constexpr std::string_view kLibraryModifiers[] = {
    "AutoRoundModifier",   "ConstantPruningModifier", "MagnitudePruningModifier",
    "REAPPruningModifier", "SparseGPTModifier",       "WandaPruningModifier"};

constexpr std::string_view kStageSuffix = "_stage";
constexpr std::string_view kGroupSuffix = "_modifiers";
constexpr std::string_view kRunType = "run_type";

Result<const ModifierClass*> FindClass(const std::string& name, std::string_view where) {
  std::vector<std::string> known;
  for (const ModifierClass* modifier : kModifierClasses) {
    if (modifier->class_name == name) return modifier;
    known.emplace_back(modifier->class_name);
  }
  const auto library = std::find(std::begin(kLibraryModifiers), std::end(kLibraryModifiers), name);
  if (library != std::end(kLibraryModifiers))
    return Unsupported(fmt::format("{}: {} is not implemented yet; here are {}", where, name,
                                   fmt::join(known, ", ")));
  std::vector<std::string> all = known;
  all.insert(all.end(), std::begin(kLibraryModifiers), std::end(kLibraryModifiers));
  return InvalidArgument(fmt::format("{}: unknown modifier \"{}\"{}; here are {}", where, name,
                                     DidYouMean(name, all), fmt::join(known, ", ")));
}

// Reads a recipe in document order.
class Reader {
 public:
  explicit Reader(Logger& log) : log_(log) {}

  Status ReadStage(const std::string& name, const Value& stage, const std::string& where) {
    recipe_.stage = name;
    if (!stage.is_object())
      return InvalidArgument(fmt::format("{} is {}, expected groups of modifiers (\"quant{}\")",
                                         where, stage.type_name(), kGroupSuffix));
    for (const auto& [key, value] : stage.as_object()) {
      if (key == kRunType) {
        OCTAVO_RETURN_IF_ERROR(CheckRunType(value, fmt::format("{}.{}", where, key)));
        continue;
      }
      if (!key.ends_with(kGroupSuffix))
        return InvalidArgument(
            fmt::format("{}: unknown key \"{}\"; groups of modifiers end in "
                        "\"{}\"",
                        where, key, kGroupSuffix));
      OCTAVO_RETURN_IF_ERROR(ReadGroup(key, value, fmt::format("{}.{}", where, key)));
    }
    return OkStatus();
  }

  Result<Recipe> Finish(std::string_view what) {
    if (recipe_.modifiers.empty())
      return InvalidArgument(fmt::format(
          "{}: no modifier; a recipe is <name>{}: {{<name>{}: {{QuantizationModifier: {{...}}}}}}",
          what, kStageSuffix, kGroupSuffix));
    return std::move(recipe_);
  }

 private:
  // Stages of older releases say whether they are for one pass or for training.
  Status CheckRunType(const Value& value, const std::string& where) {
    if (value != Value("oneshot"))
      return Unsupported(where + ": only \"oneshot\" stages can be run; nothing is trained here");
    log_.Warning(where + " has no effect any more");
    return OkStatus();
  }

  Status ReadGroup(const std::string& group, const Value& value, const std::string& where) {
    if (!value.is_object())
      return InvalidArgument(
          fmt::format("{} is {}, expected modifiers by class name", where, value.type_name()));
    for (const auto& [class_name, settings] : value.as_object()) {
      OCTAVO_RETURN_IF_ERROR(ReadModifier(group, class_name, settings, where));
    }
    return OkStatus();
  }

  Status ReadModifier(const std::string& group, const std::string& class_name, const Value& given,
                      const std::string& where) {
    OCTAVO_ASSIGN_OR_RETURN(const ModifierClass* modifier_class, FindClass(class_name, where));
    Value settings = given.is_null() ? Value::MakeObject() : given;
    if (class_name == "AWQModifier" && settings.is_object() && HasQuantizationFields(settings))
      return ReadFormerAwq(group, settings, where);
    // A GPTQModifier that says nothing of schemes works by those of an earlier modifier.
    if (class_name == "GPTQModifier" && settings.is_object() && !HasQuantizationFields(settings)) {
      for (const auto& [key, value] : earlier_schemes_.as_object()) settings.Set(key, value);
    }
    OCTAVO_ASSIGN_OR_RETURN(std::unique_ptr<Modifier> modifier,
                            modifier_class->parse(settings, where + "." + class_name, log_));
    if (modifier->quantization() != nullptr) {
      earlier_schemes_ = Value::MakeObject();
      for (const std::string& key : QuantizationKeys()) {
        const Value* value = settings.Find(key);
        if (value != nullptr) earlier_schemes_.Set(key, *value);
      }
    } else if (!earlier_schemes_.as_object().empty()) {
      return InvalidArgument(fmt::format(
          "{}: {} changes weights that the modifier before it has quantized; put it first", where,
          class_name));
    }
    recipe_.modifiers.push_back(std::move(modifier));
    recipe_.groups.push_back(group);
    return OkStatus();
  }

  // Older releases let an AWQModifier quantize too: that is a QuantizationModifier right behind it.
  Status ReadFormerAwq(const std::string& group, const Value& settings, const std::string& where) {
    Value transform = Value::MakeObject();
    Value quantization = Value::MakeObject();
    const std::vector<std::string> keys = QuantizationKeys();
    for (const auto& [key, value] : settings.as_object()) {
      const bool common = key == "requires_calibration_data";
      const bool quantizes = !common && std::find(keys.begin(), keys.end(), key) != keys.end();
      (quantizes ? quantization : transform).Set(key, value);
    }
    log_.Warning(where +
                 ".AWQModifier: what it says of schemes is taken as a QuantizationModifier behind "
                 "it");
    OCTAVO_RETURN_IF_ERROR(ReadModifier(group, "AWQModifier", transform, where));
    return ReadModifier(group, "QuantizationModifier", quantization, where);
  }

  Logger& log_;
  Recipe recipe_;
  Value earlier_schemes_ = Value::MakeObject();
};

Result<Recipe> ReadRecipe(const Value& yaml, std::string_view what, Logger& log) {
  if (!yaml.is_object())
    return InvalidArgument(fmt::format("{} is {}, expected stages (\"quant{}\")", what,
                                       yaml.type_name(), kStageSuffix));
  Reader reader(log);
  for (const auto& [key, value] : yaml.as_object()) {
    if (!key.ends_with(kStageSuffix)) {
      if (key.ends_with(kGroupSuffix))
        return InvalidArgument(
            fmt::format("{}: \"{}\" stands outside a stage, where it would not be read; put it "
                        "under a key that "
                        "ends in \"{}\"",
                        what, key, kStageSuffix));
      if (key != "args")
        log.Warning(
            fmt::format("{}: \"{}\" is not read; stages end in \"{}\"", what, key, kStageSuffix));
      continue;
    }
    OCTAVO_RETURN_IF_ERROR(reader.ReadStage(key, value, fmt::format("{}: {}", what, key)));
  }
  return reader.Finish(what);
}

// What stands between the first line of a Markdown file, "---", and the next such line.
Result<std::string_view> FrontMatter(std::string_view text, std::string_view what) {
  constexpr std::string_view kOpen = "---\n";
  constexpr std::string_view kClose = "\n---";
  const size_t end = text.starts_with(kOpen) ? text.find(kClose, kOpen.size() - 1) : text.npos;
  if (end == text.npos)
    return InvalidArgument(
        fmt::format("{}: a recipe in Markdown stands at its top, between two lines \"---\"", what));
  return text.substr(kOpen.size(), end + 1 - kOpen.size());
}

// Few bits lose much less by scales that are searched for, errors weighed by the inputs they meet
// (docs/results.md). Calibration knows those inputs; rounding to nearest is for those who want to
// be done in seconds.
bool SearchesForScales(const RecipeFlags& flags, const QuantizationScheme& scheme) {
  const bool calibrates = flags.gptq || flags.awq;
  return calibrates && scheme.weights && scheme.weights->type == QuantizationType::kInt &&
         scheme.weights->num_bits <= 4;
}

// Whether its weights have groups whose size is not part of what the scheme is (MXFP4 has 32).
bool HasGroupSize(const QuantizationScheme& scheme) {
  return scheme.weights && scheme.weights->strategy == Strategy::kGroup &&
         !scheme.weights->scale_dtype;
}

// What of the arguments is not the default, so that one can read it.
Value PlainArgs(const QuantizationArgs& args) {
  const Value defaults = ToValue(QuantizationArgs());
  const Value all = ToValue(args);
  Value plain = Value::MakeObject();
  for (const auto& [key, value] : all.as_object()) {
    const bool is_kind = key == "num_bits" || key == "type" || key == "strategy";
    const Value* usual = defaults.Find(key);
    if (is_kind || usual == nullptr || value != *usual) plain.Set(key, value);
  }
  return plain;
}

Value PlainScheme(const QuantizationScheme& scheme) {
  Value plain = Value::MakeObject();
  plain.Set("targets", Value::Array(scheme.targets.begin(), scheme.targets.end()));
  if (scheme.weights) plain.Set("weights", PlainArgs(*scheme.weights));
  if (scheme.input_activations)
    plain.Set("input_activations", PlainArgs(*scheme.input_activations));
  return plain;
}

// A preset as it is named where nothing changes it; config_groups otherwise.
Status SetSchemes(const RecipeFlags& flags, Value* quantization) {
  auto schemes = flags.schemes;
  if (schemes.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(QuantizationScheme preset, PresetScheme(flags.scheme, {"Linear"}));
    if (flags.group_size && !HasGroupSize(preset))
      return InvalidArgument(fmt::format(
          "the weights of {} have no group size to choose; leave --group-size out", flags.scheme));
    if (!flags.group_size && !SearchesForScales(flags, preset)) {
      quantization->Set("targets", Value::Array{"Linear"});
      quantization->Set("scheme", flags.scheme);
      return OkStatus();
    }
    schemes.emplace_back("group_0", std::move(preset));
  }
  Value groups;
  for (auto& [name, scheme] : schemes) {
    if (flags.group_size && HasGroupSize(scheme)) scheme.weights->group_size = flags.group_size;
    if (SearchesForScales(flags, scheme)) scheme.weights->observer = "imatrix_mse";
    groups.Set(name, PlainScheme(scheme));
  }
  quantization->Set("config_groups", std::move(groups));
  return OkStatus();
}

// One scale for the keys and one for the values of a layer.
Result<Value> CacheScheme(const std::string& name) {
  if (name != "fp8" && name != "int8")
    return InvalidArgument(fmt::format("\"{}\" is no form of a cache; fp8 and int8 are", name));
  return Value(Value::Object{{"num_bits", 8},
                             {"type", name == "fp8" ? "float" : "int"},
                             {"strategy", "tensor"},
                             {"symmetric", true},
                             {"dynamic", false},
                             {"observer", "static_minmax"}});
}

// Each line behind "# ".
std::string Commented(std::string_view comment) {
  std::string text;
  while (!comment.empty()) {
    const size_t end = std::min(comment.find('\n'), comment.size());
    text += fmt::format("# {}\n", comment.substr(0, end));
    comment.remove_prefix(std::min(end + 1, comment.size()));
  }
  return text;
}

}  // namespace

Result<Recipe> ParseRecipe(std::string_view text, std::string_view what, Logger& log) {
  if (what.ends_with(".md")) {
    OCTAVO_ASSIGN_OR_RETURN(text, FrontMatter(text, what));
  }
  OCTAVO_ASSIGN_OR_RETURN(const Value yaml, ParseYaml(text, what));
  return ReadRecipe(yaml, what, log);
}

Result<Recipe> MakeRecipe(const RecipeFlags& flags, Logger& log) {
  Value modifiers = Value::MakeObject();
  if (flags.smoothquant) {
    Value smooth;
    smooth.Set("smoothing_strength", *flags.smoothquant);
    modifiers.Set("SmoothQuantModifier", std::move(smooth));
  }
  Value quantization;
  quantization.Set("ignore", Value::Array(flags.ignore.begin(), flags.ignore.end()));
  OCTAVO_RETURN_IF_ERROR(SetSchemes(flags, &quantization));
  if (flags.kv_cache) {
    OCTAVO_ASSIGN_OR_RETURN(Value cache, CacheScheme(*flags.kv_cache));
    quantization.Set("kv_cache_scheme", std::move(cache));
  }
  if (flags.awq) modifiers.Set("AWQModifier", Value::MakeObject());
  modifiers.Set(flags.gptq ? "GPTQModifier" : "QuantizationModifier", std::move(quantization));
  Value stage;
  stage.Set("default_modifiers", std::move(modifiers));
  Value yaml;
  yaml.Set("default_stage", std::move(stage));
  return ReadRecipe(yaml, "recipe", log);
}

std::string RecipeYaml(const Recipe& recipe) {
  Value stage = Value::MakeObject();
  std::string written;  // the group that the last modifier went to
  std::string last_group;
  for (size_t i = 0; i < recipe.modifiers.size(); ++i) {
    const Modifier& modifier = *recipe.modifiers[i];
    const std::string& group = recipe.groups[i];
    // A class may stand in a group once, and groups of two stages may have one name.
    const Value* open = stage.Find(written);
    const bool fits =
        open != nullptr && group == last_group && open->Find(modifier.class_name()) == nullptr;
    if (!fits) {
      written = group;
      const std::string stem = group.substr(0, group.size() - kGroupSuffix.size());
      for (int n = 1; stage.Find(written) != nullptr; ++n) {
        written = fmt::format("{}_{}{}", stem, n, kGroupSuffix);
      }
      stage.Set(written, Value::MakeObject());
      last_group = group;
    }
    stage.Find(written)->Set(modifier.class_name(), modifier.settings());
  }
  Value yaml;
  yaml.Set(recipe.stage, std::move(stage));
  return Commented(recipe.comment) + WriteYaml(yaml);
}

}  // namespace octavo
