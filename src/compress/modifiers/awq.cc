// AWQModifier: input channels that matter are scaled up before rounding, and what makes them is
// scaled down (quantization 5.4). It only transforms; a quantizing modifier must follow.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "compress/modifier.h"
#include "compress/modifiers/awq_search.h"
#include "compress/modifiers/fold_scales.h"
#include "compress/modifiers/quantization_settings.h"
#include "quant/pattern.h"

namespace octavo {

namespace {

// What makes the input of a group: a norm, or the rows of one layer of another group (v_proj of
// o_proj's, up_proj of down_proj's).
struct Smoother {
  std::string_view name;
  std::string_view class_name;
};

struct AwqMapping {
  std::vector<ModulePattern> smooth_layer;
  std::vector<ModulePattern> balance_layers;
  std::string text;  // for messages
};

Result<bool> MatchesAny(const std::vector<ModulePattern>& patterns, const ModuleName& module) {
  for (const ModulePattern& pattern : patterns) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match(module));
    if (kind != MatchKind::kNone) return true;
  }
  return false;
}

// The mapping smooths this, and names all layers that read it.
Result<bool> Fits(const AwqMapping& mapping, const Smoother& smoother,
                  const std::vector<std::string_view>& layers) {
  OCTAVO_ASSIGN_OR_RETURN(bool fits,
                          MatchesAny(mapping.smooth_layer, {smoother.name, smoother.class_name}));
  for (const std::string_view layer : layers) {
    OCTAVO_ASSIGN_OR_RETURN(const bool named,
                            MatchesAny(mapping.balance_layers, {layer, "Linear"}));
    fits = fits && named;
  }
  return fits;
}

// Rows of v_proj are those of o_proj's columns only where every query head has values of its own,
// and nothing rotates them in between; and a bias of the smoothed layer would have to be divided
// too.
bool RowsAreColumns(const LinearLayer& source, const LinearLayer& reader) {
  return source.n == reader.k && !source.has_bias && source.output_transforms.empty();
}

class AwqModifier : public Modifier {
 public:
  AwqModifier(AwqOptions options, std::vector<AwqMapping> mappings, Value saved)
      : options_(options), mappings_(std::move(mappings)), saved_(std::move(saved)) {}

  std::string_view class_name() const override { return "AWQModifier"; }
  Value settings() const override { return saved_; }
  StatisticsNeeds needs() const override { return {.hessian = true, .mean_magnitude = true}; }

  // Every mapping must smooth something in some block, and some layer be quantized after it.
  Status Check(const Model& graph, Logger& log) const override {
    std::vector<bool> used(mappings_.size(), false);
    int64_t smoothed = 0;
    int64_t skipped = 0;
    bool any_quantized = false;
    for (const Block& block : graph.blocks) {
      const LinearLayer& v = block.qkv.layers.back();
      const LinearLayer& up = block.gate_up.layers.back();
      const std::pair<Smoother, const LinearGroup*> pairs[] = {
          {{block.attention_norm.name, "RMSNorm"}, &block.qkv},
          {{v.name, "Linear"}, &block.attention_output},
          {{block.mlp_norm.name, "RMSNorm"}, &block.gate_up},
          {{up.name, "Linear"}, &block.down}};
      for (const auto& [smoother, group] : pairs) {
        if (smoother.name.empty()) continue;  // no norm makes the group's input
        std::vector<std::string_view> names;
        for (const LinearLayer& layer : group->layers) {
          names.push_back(layer.name);
          any_quantized = any_quantized || layer.quantization.weights.has_value();
        }
        bool fits = mappings_.empty();
        for (size_t i = 0; i < mappings_.size(); ++i) {
          OCTAVO_ASSIGN_OR_RETURN(const bool one, Fits(mappings_[i], smoother, names));
          used[i] = used[i] || one;
          fits = fits || one;
        }
        if (!fits) continue;
        const bool possible =
            ScalesFold(group->layers.front()) &&
            (smoother.class_name == "RMSNorm" ||
             RowsAreColumns(smoother.name == v.name ? v : up, group->layers.front()));
        ++(possible ? smoothed : skipped);
      }
    }
    for (size_t i = 0; i < mappings_.size(); ++i) {
      if (used[i]) continue;
      return InvalidArgument(fmt::format(
          "the mapping {} fits no layers; the model's are named like {} -> {}, {} -> {}",
          mappings_[i].text, graph.blocks.front().attention_norm.name,
          graph.blocks.front().qkv.layers.front().name,
          graph.blocks.front().gate_up.layers.back().name,
          graph.blocks.front().down.layers.front().name));
    }
    if (!any_quantized)
      return InvalidArgument("no layer is quantized after it; add a QuantizationModifier behind");
    if (smoothed == 0)
      return InvalidArgument(
          "nothing can be scaled: inputs are rotated while the model runs, or shapes do not fit; "
          "leave it out");
    log.Info(fmt::format("AWQModifier: {} groups of layers{}", smoothed,
                         skipped == 0 ? ""
                                      : fmt::format(", {} left out, where shapes do not fit "
                                                    "(grouped-query attention), or a bias or a "
                                                    "rotation is in the way",
                                                    skipped)));
    return OkStatus();
  }

  Status Apply(BlockWork* block, const Context& context) const override {
    // The head's block has one group and nothing to smooth.
    for (size_t i = 0; i < block->groups.size(); ++i) {
      GroupWork& group = block->groups[i];
      // Of the groups of a block, the second and the fourth read what the one before them gives.
      LayerWork* source = i % 2 == 0 ? nullptr : &block->groups[i - 1].layers.back();
      if (group.norm == nullptr && source == nullptr) continue;
      OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
      OCTAVO_RETURN_IF_ERROR(ApplyToGroup(&group, source, context));
    }
    return OkStatus();
  }

 private:
  Status ApplyToGroup(GroupWork* group, LayerWork* source, const Context& context) const {
    std::vector<std::string_view> names;
    bool any_quantized = false;
    for (const LayerWork& layer : group->layers) {
      names.push_back(layer.layer->name);
      any_quantized = any_quantized || layer.owner != nullptr;
    }
    if (!any_quantized || !ScalesFold(*group->layers.front().layer)) return OkStatus();
    if (source != nullptr && !RowsAreColumns(*source->layer, *group->layers.front().layer))
      return OkStatus();
    const Smoother smoother = source == nullptr ? Smoother{group->norm->name, "RMSNorm"}
                                                : Smoother{source->layer->name, "Linear"};
    bool applies = mappings_.empty();
    for (const AwqMapping& mapping : mappings_) {
      OCTAVO_ASSIGN_OR_RETURN(const bool fits, Fits(mapping, smoother, names));
      applies = applies || fits;
    }
    if (!applies) return OkStatus();
    if (group->statistics.tokens == 0) {
      context.log.Warning(fmt::format("{}: no calibration token reached it; AWQ leaves it as it is",
                                      names.front()));
      return OkStatus();
    }
    Result<AwqScales> found = SearchAwqScales(*group, options_, context);
    if (!found.ok()) return found.status().Annotate(names.front());
    context.log.Debug(fmt::format("{}: AWQ error {:.4g} -> {:.4g}", names.front(),
                                  found->error_before, found->error));
    if (source != nullptr) {
      FoldIntoRows(found->scales, source, group);
      return OkStatus();
    }
    return FoldIntoNorm(std::move(found->scales), group).Annotate(group->norm->name);
  }

  AwqOptions options_;
  std::vector<AwqMapping> mappings_;  // empty: those of the graph
  Value saved_;
};

Result<std::vector<ModulePattern>> ParsePatterns(const Value& value, const std::string& where) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ParseStrings(value, where));
  std::vector<ModulePattern> patterns;
  for (const std::string& text : texts) {
    Result<ModulePattern> pattern = ModulePattern::Make(text);
    if (!pattern.ok()) return pattern.status().Annotate(where);
    patterns.push_back(*std::move(pattern));
  }
  if (patterns.empty()) return InvalidArgument(where + " is empty");
  return patterns;
}

Result<AwqMapping> ParseMapping(const Value& value, const std::string& where) {
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject object,
      StrictObject::Make(value, where,
                         {"smooth_layer", "balance_layers", "activation_hook_target"}));
  AwqMapping mapping;
  for (const char* key : {"smooth_layer", "balance_layers"}) {
    const Value* patterns = object.Find(key);
    if (patterns == nullptr) return InvalidArgument(object.Path(key) + " is missing");
    OCTAVO_ASSIGN_OR_RETURN(
        (std::string_view(key) == "smooth_layer" ? mapping.smooth_layer : mapping.balance_layers),
        ParsePatterns(*patterns, object.Path(key)));
  }
  const Value* hook = object.Find("activation_hook_target");
  if (hook != nullptr && !hook->is_null())
    return Unsupported(object.Path("activation_hook_target") +
                       ": parallel blocks are not implemented; leave it out");
  std::vector<std::string> balance;
  balance.reserve(mapping.balance_layers.size());
  for (const ModulePattern& pattern : mapping.balance_layers) balance.push_back(pattern.text());
  mapping.text =
      fmt::format("{} -> [{}]", mapping.smooth_layer.front().text(), fmt::join(balance, ", "));
  return mapping;
}

Result<DuoScaling> ParseDuoScaling(const StrictObject& object, const Value& raw) {
  const Value* value = raw.Find("duo_scaling");
  if (value == nullptr || *value == Value(true)) return DuoScaling::kOn;
  if (*value == Value(false)) return DuoScaling::kOff;
  if (*value == Value("both")) return DuoScaling::kBoth;
  return InvalidArgument(object.Path("duo_scaling") + ": expected true, false or \"both\"");
}

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  std::vector<std::string> keys = {"mappings", "duo_scaling", "n_grid", "offload_device"};
  for (std::string& key : CommonModifierKeys()) keys.push_back(std::move(key));
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(settings, where, keys));
  WarnOfRetiredKeys(object, log);
  AwqOptions options;
  OCTAVO_ASSIGN_OR_RETURN(options.duo_scaling, ParseDuoScaling(object, settings));
  OCTAVO_ASSIGN_OR_RETURN(options.n_grid, object.Int("n_grid", options.n_grid));
  if (options.n_grid < 3 || options.n_grid > 1000)
    return InvalidArgument(
        fmt::format("{} is {}, expected 3 to 1000", object.Path("n_grid"), options.n_grid));
  std::vector<AwqMapping> mappings;
  const Value* given = object.Find("mappings");
  if (given != nullptr && !given->is_null()) {
    if (!given->is_array() || given->as_array().empty())
      return InvalidArgument(object.Path("mappings") +
                             ": expected a list of {smooth_layer, balance_layers}");
    for (const Value& value : given->as_array()) {
      OCTAVO_ASSIGN_OR_RETURN(
          AwqMapping mapping,
          ParseMapping(value, fmt::format("{}[{}]", object.Path("mappings"), mappings.size())));
      mappings.push_back(std::move(mapping));
    }
  }
  Value saved = Value::MakeObject();
  saved.Set("requires_calibration_data", true);
  if (!mappings.empty()) saved.Set("mappings", *given);
  const Value* duo = settings.Find("duo_scaling");
  saved.Set("duo_scaling", duo == nullptr ? Value(true) : *duo);
  saved.Set("n_grid", options.n_grid);
  return std::unique_ptr<Modifier>(
      std::make_unique<AwqModifier>(options, std::move(mappings), std::move(saved)));
}

}  // namespace

extern const ModifierClass kAwqModifier;
const ModifierClass kAwqModifier = {"AWQModifier", Parse};

}  // namespace octavo
