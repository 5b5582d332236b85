// GPTQModifier: each column's rounding error is compensated in the columns after it
// (quantization 5.2).
#include <fmt/format.h>

#include <cmath>

#include "compress/modifier.h"
#include "compress/modifiers/gptq_solver.h"
#include "compress/modifiers/quantization_settings.h"

namespace octavo {

namespace {

class GptqModifier : public Modifier {
 public:
  GptqModifier(QuantizationConfig config, GptqOptions options, Value saved)
      : config_(std::move(config)), options_(options), saved_(std::move(saved)) {}

  std::string_view class_name() const override { return "GPTQModifier"; }
  Value settings() const override { return saved_; }
  const QuantizationConfig* quantization() const override { return &config_; }
  Status Check(const Model&, Logger&) const override { return OkStatus(); }
  StatisticsNeeds needs() const override { return {.hessian = true}; }

  Status Apply(BlockWork* block, const Context& context) const override {
    for (GroupWork& group : block->groups) {
      OCTAVO_RETURN_IF_ERROR(ApplyToGroup(&group, context));
    }
    return OkStatus();
  }

 private:
  // Layers that share an input share its factored Hessian.
  Status ApplyToGroup(GroupWork* group, const Context& context) const {
    std::optional<HessianFactor> factor;
    const GroupFacts facts(*group);
    for (LayerWork& layer : group->layers) {
      if (layer.owner != this) continue;
      OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
      const LinearLayer& linear = *layer.layer;
      if (!factor) {
        const Tensor& hessian = group->statistics.hessian;
        if (hessian.empty())
          return InvalidArgument(linear.name + ": no calibration token reached the layer");
        Result<HessianFactor> made =
            FactorHessian(hessian.data<float>(), linear.k, options_, context);
        if (!made.ok()) return made.status().Annotate(linear.name);
        factor = *std::move(made);
      }
      Result<GptqResult> solved =
          SolveGptq(*factor, layer.weight.data<float>(), linear.n, *linear.quantization.weights,
                    linear.model_dtype, facts.OfEachLayer(), options_, context);
      if (!solved.ok()) return solved.status().Annotate(linear.name);
      layer.quantized = std::move(solved->weight);
      layer.method = solved->fell_back ? "rtn" : "gptq";
      layer.note = solved->note;
      if (!layer.note.empty()) context.log.Warning(fmt::format("{}: {}", linear.name, layer.note));
    }
    return OkStatus();
  }

  QuantizationConfig config_;
  GptqOptions options_;
  Value saved_;
};

// Whether to order columns by the Hessian's diagonal: yes where nothing is said, no where an
// explicit null says so. The library takes "group" here and fails in the middle of its work.
Result<bool> ParseActOrder(const StrictObject& settings, const Value& raw) {
  const Value* value = raw.Find("actorder");
  if (value == nullptr) return true;
  if (value->is_null() || *value == Value(false)) return false;
  if (*value == Value("static") || *value == Value("weight")) return true;
  return InvalidArgument(fmt::format(
      "{} is {}: columns cannot be ordered so any more (no engine reads it); use static, weight or "
      "null",
      settings.Path("actorder"),
      value->is_string() ? "\"" + value->as_string() + "\"" : value->type_name()));
}

// The order is also declared for the weights; a scheme may name it, but then the same one.
Status DeclareActOrder(const StrictObject& settings, const Value& raw, GptqOptions* options,
                       QuantizationConfig* config) {
  const Value* given = raw.Find("actorder");
  const std::string spelling =
      given != nullptr && given->is_string() ? given->as_string() : "static";
  for (auto& [name, scheme] : config->config_groups) {
    if (!scheme.weights) continue;
    QuantizationArgs& weights = *scheme.weights;
    if (weights.actorder == ActOrder::kGroup)
      return InvalidArgument(fmt::format(
          "{}: config_groups.{} asks for actorder {}, which no engine reads any more; use static",
          settings.where(), name, weights.actorder_spelling));
    const bool scheme_orders = weights.actorder == ActOrder::kWeight;
    if (given != nullptr && scheme_orders && !options->order_by_diagonal)
      return InvalidArgument(fmt::format("{} is null, but config_groups.{} says {}",
                                         settings.Path("actorder"), name,
                                         weights.actorder_spelling));
    if (options->order_by_diagonal && !scheme_orders) {
      weights.actorder = ActOrder::kWeight;
      weights.actorder_spelling = spelling;
    }
  }
  return OkStatus();
}

Result<GptqOptions> ParseOptions(const StrictObject& settings, const Value& raw) {
  GptqOptions options;
  OCTAVO_ASSIGN_OR_RETURN(options.block_size, settings.Int("block_size", options.block_size));
  if (options.block_size < 1)
    return InvalidArgument(fmt::format("{} is {}, expected a positive number",
                                       settings.Path("block_size"), options.block_size));
  OCTAVO_ASSIGN_OR_RETURN(options.dampening_frac,
                          settings.Double("dampening_frac", options.dampening_frac));
  if (!(options.dampening_frac >= 0) || !(options.dampening_frac <= 1))
    return InvalidArgument(fmt::format("{} is {}, expected 0 to 1", settings.Path("dampening_frac"),
                                       options.dampening_frac));
  OCTAVO_ASSIGN_OR_RETURN(options.order_by_diagonal, ParseActOrder(settings, raw));
  return options;
}

Value SavedSettings(const Value& settings, const GptqOptions& options) {
  Value saved = SavedQuantizationFields(settings, true);
  saved.Set("block_size", options.block_size);
  saved.Set("dampening_frac", options.dampening_frac);
  // The library drops nulls, and so loses that the order was switched off; a null keeps it.
  const Value* actorder = settings.Find("actorder");
  saved.Set("actorder", !options.order_by_diagonal                     ? Value()
                        : actorder != nullptr && actorder->is_string() ? *actorder
                                                                       : Value("static"));
  const Value* batched = settings.Find("batched_quantization");
  if (batched != nullptr) saved.Set("batched_quantization", *batched);
  return saved;
}

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  std::vector<std::string> keys = QuantizationKeys();
  for (const char* key : {"block_size", "dampening_frac", "actorder", "batched_quantization"}) {
    keys.emplace_back(key);
  }
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(settings, where, keys));
  OCTAVO_ASSIGN_OR_RETURN(QuantizationConfig config, ParseQuantizationFields(object, log));
  OCTAVO_ASSIGN_OR_RETURN(GptqOptions options, ParseOptions(object, settings));
  OCTAVO_RETURN_IF_ERROR(DeclareActOrder(object, settings, &options, &config));
  Value saved = SavedSettings(settings, options);
  return std::unique_ptr<Modifier>(
      std::make_unique<GptqModifier>(std::move(config), options, std::move(saved)));
}

}  // namespace

extern const ModifierClass kGptqModifier;
const ModifierClass kGptqModifier = {"GPTQModifier", Parse};

}  // namespace octavo
