#include "quant/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/suggest.h"
#include "quant/foreign/foreign_format.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

// "0.15.2" < 0.16; a version that is absent or not of this form is taken for a new one.
bool IsOlderThan(std::string_view version, int major, int minor) {
  int found[2] = {0, 0};
  for (int& part : found) {
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), part);
    if (error != std::errc()) return false;
    version.remove_prefix(static_cast<size_t>(end - version.data()));
    if (!version.empty()) version.remove_prefix(1);
  }
  return found[0] != major ? found[0] < major : found[1] < minor;
}

// {"W4A16": ["Linear"]}. Before 0.16 the preset W8A16 had one scale a channel.
Result<QuantizationScheme> ParsePresetForm(const std::string& name, const Value& targets,
                                           std::string_view version, const std::string& where) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<std::string> patterns, ParseStrings(targets, where));
  Result<QuantizationScheme> preset = PresetScheme(name, std::move(patterns));
  if (!preset.ok()) return preset.status().Annotate(where);
  const bool is_w8a16 = name == "W8A16" || name == "w8a16";
  if (is_w8a16 && IsOlderThan(version, 0, 16)) {
    preset->weights->strategy = Strategy::kChannel;
    preset->weights->group_size.reset();
  }
  return preset;
}

// Releases before 0.13 wrote no scale_dtype; the format tells it (9).
void FillScaleDType(std::string_view format, std::optional<QuantizationArgs>* args) {
  if (!args->has_value() || (*args)->scale_dtype || (*args)->type != QuantizationType::kFloat)
    return;
  if (format == "nvfp4-pack-quantized" && (*args)->strategy == Strategy::kTensorGroup) {
    (*args)->scale_dtype = "torch.float8_e4m3fn";
  } else if (format == "mxfp4-pack-quantized" || format == "mxfp8-quantized") {
    (*args)->scale_dtype = "torch.uint8";
  }
}

// Sparse formats were removed from the library in 0.15; even it never read marlin-24.
Status CheckDense(std::string_view format, const std::string& where) {
  if (format != "marlin-24" && !format.starts_with("sparse-")) return OkStatus();
  return Unsupported(
      fmt::format("{}: format {} stores sparse weights, which are not supported; quantize the "
                  "original model again without sparsity",
                  where, format));
}

Status ParseGroups(const Value& groups, const std::string& where, QuantizationConfig* config) {
  if (!groups.is_object())
    return InvalidArgument(fmt::format("{} is {}, expected an object", where, groups.type_name()));
  for (const auto& [name, value] : groups.as_object()) {
    const std::string path = where + "." + name;
    OCTAVO_ASSIGN_OR_RETURN(QuantizationScheme scheme,
                            value.is_object()
                                ? ParseQuantizationScheme(value, path)
                                : ParsePresetForm(name, value, config->version, path));
    const std::string format = ResolveFormat(scheme, config->format);
    OCTAVO_RETURN_IF_ERROR(CheckDense(format, path));
    FillScaleDType(format, &scheme.weights);
    FillScaleDType(format, &scheme.input_activations);
    config->config_groups.emplace_back(name, std::move(scheme));
  }
  return OkStatus();
}

// A format that is applied to no module says nothing.
Status CheckSparsity(const Value* sparsity, std::string_view where) {
  if (sparsity == nullptr || sparsity->is_null()) return OkStatus();
  if (!sparsity->is_object())
    return InvalidArgument(
        fmt::format("{}.sparsity_config is {}, expected an object", where, sparsity->type_name()));
  const Value* format = sparsity->Find("format");
  if (format == nullptr || format->is_null() || *format == Value("dense")) return OkStatus();
  const Value* targets = sparsity->Find("targets");
  if (targets != nullptr && targets->is_array() && targets->as_array().empty()) return OkStatus();
  return Unsupported(
      fmt::format("{}.sparsity_config: sparse weights ({}) are not supported; save the model dense",
                  where, format->is_string() ? format->as_string() : format->type_name()));
}

bool IsCompressedTensors(const Value& json, bool is_old_key) {
  const Value* method = json.Find("quant_method");
  if (method == nullptr || method->is_null()) return true;
  return *method == Value("compressed-tensors") || (is_old_key && *method == Value("sparseml"));
}

// `json` names a method that is not ours.
Result<QuantizationConfig> ParseForeign(const Value& json, const std::string& where) {
  const Value& method = *json.Find("quant_method");
  const ForeignFormat* format =
      method.is_string() ? FindForeignFormat(method.as_string()) : nullptr;
  if (format != nullptr) return format->parse(json, where);
  std::vector<std::string_view> known = {"compressed-tensors"};
  for (const ForeignFormat* foreign : ForeignFormats()) known.push_back(foreign->quant_method);
  return Unsupported(
      fmt::format("{}.quant_method is {}, which is not read here; known: {}", where,
                  method.is_string() ? "\"" + method.as_string() + "\"" : method.type_name(),
                  fmt::join(known, ", ")));
}

bool IsAttention(std::string_view class_name) {
  std::string lower(class_name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("attention") != std::string::npos;
}

// R18.
Status CheckAttentionScheme(const QuantizationScheme& scheme, const ModuleName& module) {
  if (!scheme.weights && !scheme.output_activations && scheme.input_activations) return OkStatus();
  return InvalidArgument(
      fmt::format("{} is an attention module ({}): a scheme for it has input_activations only, "
                  "found {}",
                  module.name, module.class_name, SchemeString(scheme)));
}

}  // namespace

Result<QuantizationConfig> ParseQuantizationConfig(const Value& json, std::string_view where) {
  if (!json.is_object())
    return InvalidArgument(fmt::format("{} is {}, expected an object", where, json.type_name()));
  const auto in_place = [&](const auto& result) { return result.status().Annotate(where); };
  QuantizationConfig config;
  Result<std::string> format = json.GetString("format", config.format);
  if (!format.ok()) return in_place(format);
  config.format = *format;
  Result<std::string> status = json.GetString("quantization_status", config.quantization_status);
  if (!status.ok()) return in_place(status);
  config.quantization_status = *status;
  Result<std::string> version = json.GetString("version", "");
  if (!version.ok()) return in_place(version);
  config.version = *version;

  const Value* groups = json.Find("config_groups");
  if (groups == nullptr) return InvalidArgument(fmt::format("{}.config_groups is missing", where));
  OCTAVO_RETURN_IF_ERROR(ParseGroups(*groups, fmt::format("{}.config_groups", where), &config));
  const Value* ignore = json.Find("ignore");
  if (ignore != nullptr && !ignore->is_null()) {
    OCTAVO_ASSIGN_OR_RETURN(config.ignore, ParseStrings(*ignore, fmt::format("{}.ignore", where)));
  }
  const Value* kv_cache = json.Find("kv_cache_scheme");
  if (kv_cache != nullptr && !kv_cache->is_null()) {
    OCTAVO_ASSIGN_OR_RETURN(
        config.kv_cache_scheme,
        ParseQuantizationArgs(*kv_cache, fmt::format("{}.kv_cache_scheme", where)));
  }
  const Value* transforms = json.Find("transform_config");
  if (transforms != nullptr && !transforms->is_null()) {
    if (!transforms->is_object())
      return InvalidArgument(fmt::format("{}.transform_config is {}, expected an object", where,
                                         transforms->type_name()));
    config.transform_config = *transforms;
  }
  OCTAVO_RETURN_IF_ERROR(CheckSparsity(json.Find("sparsity_config"), where));
  return config;
}

Result<std::optional<QuantizationConfig>> FindQuantizationConfig(const Value& config_json) {
  const auto present = [](const Value* value) { return value != nullptr && !value->is_null(); };
  std::string where = "quantization_config";
  const Value* json = config_json.Find(where);
  bool is_old_key = false;
  if (!present(json)) {
    const Value* text_config = config_json.Find("text_config");
    if (text_config != nullptr) json = text_config->Find("quantization_config");
    where = "text_config.quantization_config";
  }
  if (!present(json)) {
    json = config_json.Find("compression_config");
    where = "compression_config";
    is_old_key = true;
  }
  if (!present(json)) return std::optional<QuantizationConfig>();

  if (!IsCompressedTensors(*json, is_old_key)) {
    OCTAVO_ASSIGN_OR_RETURN(QuantizationConfig config, ParseForeign(*json, where));
    return std::optional<QuantizationConfig>(std::move(config));
  }
  // Releases up to 0.3 nest the two configs.
  const Value* nested = is_old_key ? json->Find("quantization_config") : nullptr;
  if (present(nested)) {
    OCTAVO_RETURN_IF_ERROR(CheckSparsity(json->Find("sparsity_config"), where));
    json = nested;
    where += ".quantization_config";
  }
  OCTAVO_ASSIGN_OR_RETURN(QuantizationConfig config, ParseQuantizationConfig(*json, where));
  return std::optional<QuantizationConfig>(std::move(config));
}

Result<SchemeResolver> SchemeResolver::Make(QuantizationConfig config) {
  SchemeResolver resolver(std::move(config));
  for (const std::string& text : resolver.config_.ignore) {
    OCTAVO_ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Make(text));
    resolver.ignore_.push_back(std::move(pattern));
  }
  std::vector<std::pair<std::string, size_t>> targets;
  for (size_t group = 0; group < resolver.config_.config_groups.size(); ++group) {
    for (const std::string& text : resolver.config_.config_groups[group].second.targets) {
      targets.emplace_back(text, group);
    }
  }
  std::sort(targets.begin(), targets.end());
  for (size_t i = 0; i < targets.size(); ++i) {
    const bool overridden = i + 1 < targets.size() && targets[i].first == targets[i + 1].first;
    if (overridden) continue;
    OCTAVO_ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Make(targets[i].first));
    resolver.targets_.push_back({std::move(pattern), targets[i].second});
  }
  return resolver;
}

Result<std::optional<QuantizationScheme>> SchemeResolver::Resolve(const ModuleName& module) const {
  const std::optional<QuantizationScheme> not_quantized;
  const bool is_attention = IsAttention(module.class_name);
  if (module.class_name != "Linear" && module.class_name != "Embedding" && !is_attention)
    return not_quantized;
  for (const ModulePattern& pattern : ignore_) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match(module));
    if (kind != MatchKind::kNone) return not_quantized;
  }
  MatchKind best = MatchKind::kNone;
  size_t group = 0;
  for (const Target& target : targets_) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, target.pattern.Match(module));
    if (kind < best) {  // of equals the first: targets are sorted
      best = kind;
      group = target.group;
    }
  }
  if (best == MatchKind::kNone) return not_quantized;
  QuantizationScheme scheme = config_.config_groups[group].second;
  if (is_attention) {
    OCTAVO_RETURN_IF_ERROR(CheckAttentionScheme(scheme, module));
  }
  const bool is_empty = !scheme.weights && !scheme.input_activations && !scheme.output_activations;
  if (is_empty) return not_quantized;
  scheme.format = ResolveFormat(scheme, config_.format);
  return std::optional<QuantizationScheme>(std::move(scheme));
}

Result<std::optional<QuantizationScheme>> SchemeResolver::ResolveFused(
    std::span<const ModuleName> shards) const {
  std::optional<QuantizationScheme> first;
  for (size_t i = 0; i < shards.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(std::optional<QuantizationScheme> scheme, Resolve(shards[i]));
    if (i == 0) {
      first = std::move(scheme);
      continue;
    }
    const bool same =
        first.has_value() == scheme.has_value() && (!first || SameQuantization(*first, *scheme));
    if (same) continue;
    const auto describe = [](const auto& s) { return s ? SchemeString(*s) : "not quantized"; };
    return InvalidArgument(
        fmt::format("{} and {} run as one matrix and need one scheme, but {} is [{}] and {} is "
                    "[{}]; give them the same targets, or ignore all of them",
                    shards[0].name, shards[i].name, shards[0].name, describe(first), shards[i].name,
                    describe(scheme)));
  }
  return first;
}

Result<bool> MatchesPattern(std::string_view pattern, const ModuleName& module) {
  OCTAVO_ASSIGN_OR_RETURN(const ModulePattern compiled, ModulePattern::Make(pattern));
  OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, compiled.Match(module));
  return kind != MatchKind::kNone;
}

Result<std::optional<QuantizationScheme>> ResolveScheme(const QuantizationConfig& config,
                                                        const ModuleName& module) {
  OCTAVO_ASSIGN_OR_RETURN(const SchemeResolver resolver, SchemeResolver::Make(config));
  return resolver.Resolve(module);
}

Result<UnmatchedPatterns> FindUnmatchedPatterns(const QuantizationConfig& config,
                                                const std::vector<ModuleName>& modules) {
  OCTAVO_ASSIGN_OR_RETURN(const SchemeResolver resolver, SchemeResolver::Make(config));
  const auto matches_any = [&](const ModulePattern& pattern) -> Result<bool> {
    for (const ModuleName& module : modules) {
      OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match(module));
      if (kind != MatchKind::kNone) return true;
    }
    return false;
  };
  UnmatchedPatterns unmatched;
  for (const SchemeResolver::Target& target : resolver.targets_) {
    OCTAVO_ASSIGN_OR_RETURN(const bool found, matches_any(target.pattern));
    if (!found) unmatched.targets.push_back(target.pattern.text());
  }
  for (const ModulePattern& pattern : resolver.ignore_) {
    OCTAVO_ASSIGN_OR_RETURN(const bool found, matches_any(pattern));
    if (!found) unmatched.ignore.push_back(pattern.text());
  }
  return unmatched;
}

std::string ResolveFormat(const QuantizationScheme& scheme, std::string_view checkpoint_format) {
  if (scheme.format) return *scheme.format;
  const bool names_none = checkpoint_format == "fakequant" || checkpoint_format == "dense" ||
                          checkpoint_format == "mixed-precision";
  return names_none ? InferFormat(scheme) : std::string(checkpoint_format);
}

std::string CheckpointFormat(const QuantizationConfig& config) {
  std::string format = "dense";
  for (const auto& [name, scheme] : config.config_groups) {
    const std::string own = scheme.format ? *scheme.format : InferFormat(scheme);
    if (own == "dense" || own == format) continue;
    if (format != "dense") return "mixed-precision";
    format = own;
  }
  return format;
}

Value ToValue(const QuantizationConfig& config) {
  Value groups = Value::MakeObject();
  for (size_t i = 0; i < config.config_groups.size(); ++i) {
    groups.Set(fmt::format("group_{}", i), ToValue(config.config_groups[i].second));
  }
  Value json;
  json.Set("config_groups", std::move(groups));
  json.Set("format", config.format);
  json.Set("global_compression_ratio", Value());
  json.Set("ignore", Value::Array(config.ignore.begin(), config.ignore.end()));
  json.Set("kv_cache_scheme", config.kv_cache_scheme ? ToValue(*config.kv_cache_scheme) : Value());
  json.Set("quant_method", "compressed-tensors");
  json.Set("quantization_status", config.quantization_status);
  json.Set("sparsity_config", Value::MakeObject());
  json.Set("transform_config", config.transform_config);
  json.Set("version", config.version);
  return json;
}

}  // namespace octavo
