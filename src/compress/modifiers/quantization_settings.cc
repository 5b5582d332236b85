#include "compress/modifiers/quantization_settings.h"

#include <fmt/format.h>

#include <array>

#include "quant/kv_cache.h"
#include "quant/observers/activation_observer.h"
#include "quant/observers/observer.h"
#include "quant/scale_grid.h"

namespace octavo {

namespace {

constexpr std::array<std::string_view, 3> kObserverKeys = {"weight_observer", "input_observer",
                                                           "output_observer"};
constexpr std::array<std::string_view, 3> kObserverNames = {"weights", "input", "output"};

// Of older releases: how they ordered and spread the work, which is not the recipe's matter here.
constexpr std::string_view kRetiredKeys[] = {
    "num_calibration_steps", "calibration_function", "disable_quantization_observer_epoch",
    "sequential_update",     "sequential_targets",   "offload_device",
    "offload_hessians"};

using Observers = std::array<std::optional<std::string>, 3>;  // weights, input, output

// "weight_observer" and its like, or "observer": {weights, input, output}; not both.
Result<Observers> ParseObservers(const StrictObject& settings) {
  Observers observers;
  bool has_single = false;
  for (size_t i = 0; i < kObserverKeys.size(); ++i) {
    if (!settings.Has(kObserverKeys[i])) continue;
    OCTAVO_ASSIGN_OR_RETURN(observers[i], settings.String(kObserverKeys[i], ""));
    has_single = true;
  }
  const Value* table = settings.Find("observer");
  if (table == nullptr) return observers;
  if (has_single)
    return InvalidArgument(settings.where() +
                           ": give either observer or weight_observer, input_observer and "
                           "output_observer, not both");
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject object,
      StrictObject::Make(*table, settings.Path("observer"), {"weights", "input", "output"}));
  for (size_t i = 0; i < kObserverNames.size(); ++i) {
    if (!object.Has(kObserverNames[i])) continue;
    OCTAVO_ASSIGN_OR_RETURN(observers[i], object.String(kObserverNames[i], ""));
  }
  return observers;
}

void SetObserver(const std::optional<std::string>& observer,
                 std::optional<QuantizationArgs>* args) {
  if (observer && args->has_value()) (*args)->observer = observer;
}

Status AddPreset(std::string_view preset, std::vector<std::string> targets, std::string_view where,
                 QuantizationConfig* config) {
  Result<QuantizationScheme> scheme = PresetScheme(preset, std::move(targets));
  if (!scheme.ok()) return scheme.status().Annotate(where);
  config->config_groups.emplace_back(fmt::format("group_{}", config->config_groups.size()),
                                     *std::move(scheme));
  return OkStatus();
}

// `scheme`: a preset, or {preset: targets}.
Status ParseSchemeField(const StrictObject& settings, QuantizationConfig* config) {
  const Value& scheme = *settings.Find("scheme");
  const std::string where = settings.Path("scheme");
  if (scheme.is_string()) {
    OCTAVO_ASSIGN_OR_RETURN(std::vector<std::string> targets,
                            settings.Strings("targets", {"Linear"}));
    return AddPreset(scheme.as_string(), std::move(targets), where, config);
  }
  if (!scheme.is_object())
    return InvalidArgument(
        fmt::format("{} is {}, expected the name of a preset or {{preset: targets}}", where,
                    scheme.type_name()));
  for (const auto& [preset, value] : scheme.as_object()) {
    const std::string path = where + "." + preset;
    OCTAVO_ASSIGN_OR_RETURN(std::vector<std::string> targets, ParseStrings(value, path));
    OCTAVO_RETURN_IF_ERROR(AddPreset(preset, std::move(targets), path, config));
  }
  return OkStatus();
}

// An observer that is not there, or that its observer_kwargs do not suit, is refused before any
// work: it is tried on one zero.
Status TryObserver(const QuantizationArgs& args) {
  QuantizationArgs whole = args;
  whole.strategy = Strategy::kTensor;
  whole.group_size.reset();
  whole.block_structure.reset();
  OCTAVO_ASSIGN_OR_RETURN(const WeightObserver* observer, FindWeightObserver(whole));
  OCTAVO_ASSIGN_OR_RETURN(const ScaleGrid grid, MakeScaleGrid(whole, 1, 1));
  const float zero = 0;
  const auto ranges = observer->observe(whole, grid, {&zero, 1}, DType::kBF16, {});
  return ranges.ok() ? OkStatus() : ranges.status();
}

Status TryActivationObserver(const QuantizationArgs& args) {
  const auto observer = ActivationObserver::Make(args, DType::kBF16);
  if (!observer.ok()) return observer.status();
  return TryObserver(args);
}

Status CheckObservers(const QuantizationScheme& scheme) {
  if (scheme.weights) OCTAVO_RETURN_IF_ERROR(TryObserver(*scheme.weights).Annotate("weights"));
  const auto& input = scheme.input_activations;
  if (!input || input->dynamic == Dynamic::kTrue) return OkStatus();
  return TryActivationObserver(*input).Annotate("input_activations");
}

// What no cache can be is refused when the recipe meets the model.
Status CheckCacheObserver(const QuantizationArgs& cache) {
  return WhyUnsupportedForAttention(cache).empty() ? TryActivationObserver(cache) : OkStatus();
}

}  // namespace

std::vector<std::string> CommonModifierKeys() {
  std::vector<std::string> keys = {
      "requires_calibration_data", "index", "group", "start", "end", "update"};
  keys.insert(keys.end(), std::begin(kRetiredKeys), std::end(kRetiredKeys));
  return keys;
}

void WarnOfRetiredKeys(const StrictObject& settings, Logger& log) {
  for (const std::string_view key : kRetiredKeys) {
    if (settings.Has(key)) log.Warning(settings.Path(key) + " has no effect any more");
  }
}

std::vector<std::string> QuantizationKeys() {
  std::vector<std::string> keys = {"config_groups",   "targets",
                                   "ignore",          "scheme",
                                   "kv_cache_scheme", "weight_observer",
                                   "input_observer",  "output_observer",
                                   "observer",        "bypass_divisibility_checks"};
  for (std::string& key : CommonModifierKeys()) keys.push_back(std::move(key));
  return keys;
}

bool HasQuantizationFields(const Value& settings) {
  for (const char* key : {"scheme", "config_groups", "ignore", "kv_cache_scheme", "targets"}) {
    const Value* member = settings.Find(key);
    if (member != nullptr && !member->is_null()) return true;
  }
  return false;
}

Result<QuantizationConfig> ParseQuantizationFields(const StrictObject& settings, Logger& log) {
  WarnOfRetiredKeys(settings, log);
  QuantizationConfig config;
  const bool has_groups = settings.Has("config_groups");
  if (settings.Has("scheme") && has_groups)
    return InvalidArgument(settings.where() + ": give either scheme or config_groups, not both");
  if (settings.Has("scheme")) {
    OCTAVO_RETURN_IF_ERROR(ParseSchemeField(settings, &config));
  } else if (has_groups) {
    const Value* targets = settings.Find("targets");
    const bool is_default = targets == nullptr || *targets == Value("Linear") ||
                            *targets == Value(Value::Array{"Linear"});
    if (!is_default)
      log.Warning(settings.Path("targets") +
                  " has no effect beside config_groups, which have "
                  "targets of their own");
    Value json;
    json.Set("config_groups", *settings.Find("config_groups"));
    OCTAVO_ASSIGN_OR_RETURN(config, ParseQuantizationConfig(json, settings.where()));
  } else if (!settings.Has("kv_cache_scheme")) {
    return InvalidArgument(settings.where() +
                           ": says not what to quantize to; give a scheme (\"W8A8\"), "
                           "config_groups or, for the cache alone, kv_cache_scheme");
  }
  if (const Value* cache = settings.Find("kv_cache_scheme"); settings.Has("kv_cache_scheme")) {
    const std::string where = settings.Path("kv_cache_scheme");
    OCTAVO_ASSIGN_OR_RETURN(config.kv_cache_scheme, ParseQuantizationArgs(*cache, where));
    OCTAVO_RETURN_IF_ERROR(CheckCacheObserver(*config.kv_cache_scheme).Annotate(where));
  }
  OCTAVO_ASSIGN_OR_RETURN(config.ignore, settings.Strings("ignore", {}));
  OCTAVO_ASSIGN_OR_RETURN(const Observers observers, ParseObservers(settings));
  for (auto& [name, scheme] : config.config_groups) {
    SetObserver(observers[0], &scheme.weights);
    SetObserver(observers[1], &scheme.input_activations);
    SetObserver(observers[2], &scheme.output_activations);
    FillDefaultObservers(&scheme);
    OCTAVO_RETURN_IF_ERROR(CheckObservers(scheme).Annotate(settings.where() + ": " + name));
  }
  OCTAVO_ASSIGN_OR_RETURN(const bool bypass, settings.Bool("bypass_divisibility_checks", false));
  if (bypass)
    log.Warning(settings.Path("bypass_divisibility_checks") +
                " has no effect: groups must divide the columns, or no engine loads the result");
  return config;
}

bool RequiresCalibration(const QuantizationConfig& config) {
  const auto has_stored_scale = [](const std::optional<QuantizationArgs>& activations) {
    return activations && activations->dynamic != Dynamic::kTrue;
  };
  for (const auto& [name, scheme] : config.config_groups) {
    if (has_stored_scale(scheme.input_activations) || has_stored_scale(scheme.output_activations))
      return true;
    const std::string observer = scheme.weights ? scheme.weights->observer.value_or("") : "";
    if (observer == "imatrix_mse" || observer == "nvfp4_expanded_imatrix") return true;
  }
  return config.kv_cache_scheme.has_value();
}

Value SavedQuantizationFields(const Value& settings, bool requires_calibration_data) {
  Value saved = Value::MakeObject();
  for (const char* key : {"config_groups", "targets", "ignore", "scheme", "kv_cache_scheme",
                          "weight_observer", "input_observer", "output_observer", "observer"}) {
    const Value* member = settings.Find(key);
    if (member != nullptr && !member->is_null()) {
      const bool is_list = std::string_view(key) == "targets" || std::string_view(key) == "ignore";
      saved.Set(key, is_list && member->is_string() ? Value(Value::Array{*member}) : *member);
      continue;
    }
    if (std::string_view(key) == "targets") saved.Set(key, Value::Array{"Linear"});
    if (std::string_view(key) == "ignore") saved.Set(key, Value::MakeArray());
  }
  const Value* bypass = settings.Find("bypass_divisibility_checks");
  saved.Set("bypass_divisibility_checks", bypass != nullptr && *bypass == Value(true));
  saved.Set("requires_calibration_data", requires_calibration_data);
  return saved;
}

}  // namespace octavo
