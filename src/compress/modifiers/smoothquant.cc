// SmoothQuantModifier: outlier channels of a norm's output move into the weights behind it
// (quantization 5.3).
#include "compress/modifiers/smoothquant.h"

#include <fmt/format.h>

#include "compress/modifiers/fold_scales.h"
#include "compress/modifiers/quantization_settings.h"
#include "compress/modifiers/smooth_mappings.h"

namespace octavo {

namespace {

struct SmoothSettings {
  double strength = 0.5;
  SmoothAlgorithm algorithm = SmoothAlgorithm::kSmoothQuant;
  SmoothMappings mappings;
};

std::string_view AlgorithmName(SmoothAlgorithm algorithm) {
  return algorithm == SmoothAlgorithm::kSmoothQuant ? "smoothquant" : "log_equalization";
}

class SmoothQuantModifier : public Modifier {
 public:
  SmoothQuantModifier(std::string_view class_name, SmoothSettings settings, Value saved)
      : class_name_(class_name), settings_(std::move(settings)), saved_(std::move(saved)) {}

  std::string_view class_name() const override { return class_name_; }
  Value settings() const override { return saved_; }
  StatisticsNeeds needs() const override { return {.channel_range = true}; }

  Status Check(const Model& graph, Logger& log) const override {
    OCTAVO_ASSIGN_OR_RETURN(const int64_t smoothed, settings_.mappings.Check(graph));
    OCTAVO_RETURN_IF_ERROR(CheckRotations(graph));
    log.Info(fmt::format("{}: {} norms", class_name_, smoothed));
    return OkStatus();
  }

  Status Apply(BlockWork* block, const Context& context) const override {
    for (GroupWork& group : block->groups) {
      if (group.norm == nullptr) continue;
      OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
      OCTAVO_ASSIGN_OR_RETURN(const bool applies, settings_.mappings.Applies(
                                                      group.norm->name, LayerNames(*group.source)));
      if (!applies) continue;
      const Status smoothed = Smooth(&group);
      if (!smoothed.ok()) return smoothed.Annotate(group.norm->name);
    }
    return OkStatus();
  }

 private:
  Status CheckRotations(const Model& graph) const {
    for (const Block& block : graph.blocks) {
      for (const auto& [norm, group] : {std::pair(&block.attention_norm.name, &block.qkv),
                                        std::pair(&block.mlp_norm.name, &block.gate_up)}) {
        const LinearLayer& first = group->layers.front();
        if (norm->empty() || ScalesFold(first)) continue;
        OCTAVO_ASSIGN_OR_RETURN(const bool applies,
                                settings_.mappings.Applies(*norm, LayerNames(*group)));
        if (!applies) continue;
        return InvalidArgument(
            fmt::format("{} would be smoothed into {}, but what is between them is rotated while "
                        "the model runs; ignore them here, or in the modifier that rotates",
                        *norm, first.name));
      }
    }
    return OkStatus();
  }

  static std::vector<std::string_view> LayerNames(const LinearGroup& group) {
    std::vector<std::string_view> names;
    names.reserve(group.layers.size());
    for (const LinearLayer& layer : group.layers) names.push_back(layer.name);
    return names;
  }

  Status Smooth(GroupWork* group) const {
    std::vector<std::span<const float>> weights;
    weights.reserve(group->layers.size());
    for (const LayerWork& layer : group->layers) weights.push_back(layer.weight.data<float>());
    OCTAVO_ASSIGN_OR_RETURN(std::vector<float> scales,
                            SmoothScales(group->statistics.minimum, group->statistics.maximum,
                                         weights, settings_.strength, settings_.algorithm));
    return FoldIntoNorm(std::move(scales), group);
  }

  std::string_view class_name_;
  SmoothSettings settings_;
  Value saved_;
};

Result<SmoothSettings> ParseSettings(const StrictObject& object, SmoothAlgorithm fallback) {
  SmoothSettings settings;
  OCTAVO_ASSIGN_OR_RETURN(settings.strength,
                          object.Double("smoothing_strength", settings.strength));
  if (!(settings.strength >= 0) || !(settings.strength <= 1))
    return InvalidArgument(fmt::format("{} is {}, expected 0 to 1",
                                       object.Path("smoothing_strength"), settings.strength));
  OCTAVO_ASSIGN_OR_RETURN(const std::string algorithm,
                          object.String("algorithm", AlgorithmName(fallback)));
  settings.algorithm = algorithm == AlgorithmName(SmoothAlgorithm::kLogEqualization)
                           ? SmoothAlgorithm::kLogEqualization
                           : SmoothAlgorithm::kSmoothQuant;
  if (algorithm != AlgorithmName(settings.algorithm))
    return InvalidArgument(
        fmt::format("{} is \"{}\", expected \"smoothquant\" or \"log_equalization\"",
                    object.Path("algorithm"), algorithm));
  OCTAVO_ASSIGN_OR_RETURN(settings.mappings,
                          SmoothMappings::Parse(object.Find("mappings"), object.Path("mappings"),
                                                object.Find("ignore"), object.Path("ignore")));
  return settings;
}

Value SavedSettings(const StrictObject& object, const SmoothSettings& parsed) {
  Value saved = Value::MakeObject();
  saved.Set("requires_calibration_data", true);
  saved.Set("smoothing_strength", parsed.strength);
  if (const Value* mappings = object.Find("mappings")) saved.Set("mappings", *mappings);
  const Value* ignore = object.Find("ignore");
  saved.Set("ignore", ignore == nullptr     ? Value::MakeArray()
                      : ignore->is_string() ? Value(Value::Array{*ignore})
                                            : *ignore);
  saved.Set("algorithm", AlgorithmName(parsed.algorithm));
  return saved;
}

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  return ParseSmoothQuant("SmoothQuantModifier", SmoothAlgorithm::kSmoothQuant, settings, where,
                          log);
}

}  // namespace

Result<std::unique_ptr<Modifier>> ParseSmoothQuant(std::string_view class_name,
                                                   SmoothAlgorithm algorithm, const Value& settings,
                                                   std::string_view where, Logger& log) {
  std::vector<std::string> keys = {"smoothing_strength", "mappings", "ignore", "algorithm"};
  for (std::string& key : CommonModifierKeys()) keys.push_back(std::move(key));
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(settings, where, keys));
  WarnOfRetiredKeys(object, log);
  OCTAVO_ASSIGN_OR_RETURN(SmoothSettings parsed, ParseSettings(object, algorithm));
  Value saved = SavedSettings(object, parsed);
  return std::unique_ptr<Modifier>(
      std::make_unique<SmoothQuantModifier>(class_name, std::move(parsed), std::move(saved)));
}

extern const ModifierClass kSmoothQuantModifier;
const ModifierClass kSmoothQuantModifier = {"SmoothQuantModifier", Parse};

}  // namespace octavo
