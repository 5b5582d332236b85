// SmoothQuantModifier: outlier channels of a norm's output move into the weights behind it
// (quantization 5.3).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compress/modifier.h"
#include "compress/modifiers/quantization_settings.h"
#include "compress/modifiers/smooth_scales.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// Layers that a norm feeds, and the norm, by patterns.
struct SmoothMapping {
  std::vector<ModulePattern> balance_layers;
  std::vector<ModulePattern> smooth_layer;
  std::string text;  // for messages
};

struct SmoothSettings {
  double strength = 0.5;
  SmoothAlgorithm algorithm = SmoothAlgorithm::kSmoothQuant;
  // What no mapping names: every norm that feeds linear layers, with all that it feeds.
  bool has_mappings = false;
  std::vector<SmoothMapping> mappings;
  std::vector<ModulePattern> ignore;
};

Result<bool> MatchesAny(const std::vector<ModulePattern>& patterns, std::string_view name,
                        std::string_view class_name) {
  for (const ModulePattern& pattern : patterns) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match({name, class_name}));
    if (kind != MatchKind::kNone) return true;
  }
  return false;
}

class SmoothQuantModifier : public Modifier {
 public:
  SmoothQuantModifier(SmoothSettings settings, Value saved)
      : settings_(std::move(settings)), saved_(std::move(saved)) {}

  std::string_view class_name() const override { return "SmoothQuantModifier"; }
  Value settings() const override { return saved_; }
  StatisticsNeeds needs() const override { return {.channel_range = true}; }

  // Resolves every mapping, so that one that hits nothing, or not all that a norm feeds, is refused
  // before the work begins.
  Status Check(const Model& graph, Logger& log) const override {
    std::vector<int64_t> uses(settings_.mappings.size(), 0);
    int64_t smoothed = 0;
    for (const Block& block : graph.blocks) {
      const std::pair<const std::string&, const LinearGroup&> pairs[] = {
          {block.attention_norm, block.qkv}, {block.mlp_norm, block.gate_up}};
      for (const auto& [norm, group] : pairs) {
        std::vector<std::string_view> names;
        for (const LinearLayer& layer : group.layers) names.push_back(layer.name);
        OCTAVO_ASSIGN_OR_RETURN(const bool applies, Applies(norm, names, &uses));
        smoothed += applies;
      }
    }
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i] == 0)
        return InvalidArgument(fmt::format(
            "the mapping {} matches no norm of the model, or none of the layers behind it",
            settings_.mappings[i].text));
    }
    log.Info(fmt::format("SmoothQuantModifier: {} norms", smoothed));
    return OkStatus();
  }

  Status Apply(BlockWork* block, const Context& context) const override {
    for (GroupWork& group : block->groups) {
      if (group.norm == nullptr) continue;
      OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
      std::vector<std::string_view> names;
      for (const LayerWork& layer : group.layers) names.push_back(layer.layer->name);
      OCTAVO_ASSIGN_OR_RETURN(const bool applies, Applies(group.norm->name, names, nullptr));
      if (!applies) continue;
      const Status smoothed = Smooth(&group);
      if (!smoothed.ok()) return smoothed.Annotate(group.norm->name);
    }
    return OkStatus();
  }

 private:
  // Whether the norm is smoothed into the layers it feeds. `uses` counts per mapping.
  Result<bool> Applies(const std::string& norm, const std::vector<std::string_view>& layers,
                       std::vector<int64_t>* uses) const {
    bool applies = !settings_.has_mappings;
    for (size_t i = 0; i < settings_.mappings.size(); ++i) {
      const SmoothMapping& mapping = settings_.mappings[i];
      OCTAVO_ASSIGN_OR_RETURN(const bool matches,
                              MatchesAny(mapping.smooth_layer, norm, "RMSNorm"));
      if (!matches) continue;
      std::vector<std::string_view> left_out;
      for (std::string_view layer : layers) {
        OCTAVO_ASSIGN_OR_RETURN(const bool balanced,
                                MatchesAny(mapping.balance_layers, layer, "Linear"));
        if (!balanced) left_out.push_back(layer);
      }
      if (left_out.size() == layers.size()) continue;
      if (!left_out.empty())
        return InvalidArgument(fmt::format(
            "the mapping {} leaves out {}, which {} feeds too and would be wrong after it is "
            "smoothed; name all its layers",
            mapping.text, left_out.front(), norm));
      applies = true;
      if (uses != nullptr) ++(*uses)[i];
    }
    if (!applies) return false;
    // Left alone only when the norm and all its layers are ignored.
    OCTAVO_ASSIGN_OR_RETURN(bool ignored, MatchesAny(settings_.ignore, norm, "RMSNorm"));
    for (std::string_view layer : layers) {
      OCTAVO_ASSIGN_OR_RETURN(const bool one, MatchesAny(settings_.ignore, layer, "Linear"));
      ignored = ignored && one;
    }
    return !ignored;
  }

  Status Smooth(GroupWork* group) const {
    std::vector<std::span<const float>> weights;
    for (const LayerWork& layer : group->layers) weights.push_back(layer.weight.data<float>());
    OCTAVO_ASSIGN_OR_RETURN(std::vector<float> scales,
                            SmoothScales(group->statistics.minimum, group->statistics.maximum,
                                         weights, settings_.strength, settings_.algorithm));
    // The norm's weight is rounded when it is stored. What it is then really divided by is what the
    // columns are multiplied by, so that smoothing alone changes nothing.
    const DType dtype = group->layers.front().layer->model_dtype;
    const std::span<float> norm = group->norm->weight.mutable_data<float>();
    for (size_t j = 0; j < norm.size(); ++j) {
      const float stored = RoundToDType(norm[j] / scales[j], dtype);
      if (!std::isfinite(stored))
        return InvalidArgument(fmt::format("channel {}: {} / {} does not fit {}", j, norm[j],
                                           scales[j], DTypeName(dtype)));
      const float divisor = norm[j] / stored;
      if (std::isfinite(divisor) && divisor > 0) scales[j] = divisor;
      norm[j] = stored;
    }
    group->norm->changed = true;
    for (LayerWork& layer : group->layers) {
      const std::span<float> weight = layer.weight.mutable_data<float>();
      for (size_t row = 0; row < weight.size(); row += scales.size()) {
        for (size_t j = 0; j < scales.size(); ++j) weight[row + j] *= scales[j];
      }
      layer.changed = true;
    }
    group->statistics.DivideInput(scales);
    return OkStatus();
  }

  SmoothSettings settings_;
  Value saved_;
};

Result<std::vector<ModulePattern>> ParsePatterns(const Value& value, std::string_view where) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ParseStrings(value, where));
  std::vector<ModulePattern> patterns;
  for (const std::string& text : texts) {
    Result<ModulePattern> pattern = ModulePattern::Make(text);
    if (!pattern.ok()) return pattern.status().Annotate(where);
    patterns.push_back(*std::move(pattern));
  }
  return patterns;
}

// [[balance layers], smooth layer], as the library writes a pair.
Result<SmoothMapping> ParseMapping(const Value& value, const std::string& where) {
  if (!value.is_array() || value.as_array().size() != 2)
    return InvalidArgument(where + ": expected [[patterns of the layers], pattern of the norm]");
  SmoothMapping mapping;
  OCTAVO_ASSIGN_OR_RETURN(mapping.balance_layers, ParsePatterns(value.as_array()[0], where));
  OCTAVO_ASSIGN_OR_RETURN(mapping.smooth_layer, ParsePatterns(value.as_array()[1], where));
  if (mapping.balance_layers.empty() || mapping.smooth_layer.empty())
    return InvalidArgument(where + ": a mapping needs layers and a norm");
  mapping.text = fmt::format("{} <- {}", mapping.balance_layers.front().text(),
                             mapping.smooth_layer.front().text());
  return mapping;
}

Result<SmoothSettings> ParseSettings(const StrictObject& object) {
  SmoothSettings settings;
  OCTAVO_ASSIGN_OR_RETURN(settings.strength,
                          object.Double("smoothing_strength", settings.strength));
  if (!(settings.strength >= 0) || !(settings.strength <= 1))
    return InvalidArgument(fmt::format("{} is {}, expected 0 to 1",
                                       object.Path("smoothing_strength"), settings.strength));
  OCTAVO_ASSIGN_OR_RETURN(const std::string algorithm, object.String("algorithm", "smoothquant"));
  if (algorithm != "smoothquant" && algorithm != "log_equalization")
    return InvalidArgument(
        fmt::format("{} is \"{}\", expected \"smoothquant\" or \"log_equalization\"",
                    object.Path("algorithm"), algorithm));
  if (algorithm == "log_equalization") settings.algorithm = SmoothAlgorithm::kLogEqualization;
  if (const Value* mappings = object.Find("mappings")) {
    const std::string where = object.Path("mappings");
    if (!mappings->is_array())
      return InvalidArgument(
          fmt::format("{} is {}, expected a list", where, mappings->type_name()));
    settings.has_mappings = true;
    for (const Value& value : mappings->as_array()) {
      OCTAVO_ASSIGN_OR_RETURN(
          SmoothMapping mapping,
          ParseMapping(value, fmt::format("{}[{}]", where, settings.mappings.size())));
      settings.mappings.push_back(std::move(mapping));
    }
  }
  if (const Value* ignore = object.Find("ignore")) {
    OCTAVO_ASSIGN_OR_RETURN(settings.ignore, ParsePatterns(*ignore, object.Path("ignore")));
  }
  return settings;
}

Value SavedSettings(const Value& settings, const SmoothSettings& parsed) {
  Value saved = Value::MakeObject();
  saved.Set("requires_calibration_data", true);
  saved.Set("smoothing_strength", parsed.strength);
  if (parsed.has_mappings) saved.Set("mappings", *settings.Find("mappings"));
  const Value* ignore = settings.Find("ignore");
  saved.Set("ignore", ignore == nullptr || ignore->is_null() ? Value::MakeArray()
                      : ignore->is_string()                  ? Value(Value::Array{*ignore})
                                                             : *ignore);
  saved.Set("algorithm",
            parsed.algorithm == SmoothAlgorithm::kSmoothQuant ? "smoothquant" : "log_equalization");
  return saved;
}

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where, Logger&) {
  std::vector<std::string> keys = {
      "smoothing_strength",  "mappings", "ignore", "algorithm", "num_calibration_steps",
      "calibration_function"};
  for (std::string& key : CommonModifierKeys()) keys.push_back(std::move(key));
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(settings, where, keys));
  OCTAVO_ASSIGN_OR_RETURN(SmoothSettings parsed, ParseSettings(object));
  Value saved = SavedSettings(settings, parsed);
  return std::unique_ptr<Modifier>(
      std::make_unique<SmoothQuantModifier>(std::move(parsed), std::move(saved)));
}

}  // namespace

extern const ModifierClass kSmoothQuantModifier;
const ModifierClass kSmoothQuantModifier = {"SmoothQuantModifier", Parse};

}  // namespace octavo
