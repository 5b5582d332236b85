#include "compress/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/architecture.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

// The release of compressed-tensors whose format the output has; readers choose old spellings by
// it.
constexpr char kFormatVersion[] = "0.19.0";

std::vector<LinearGroup*> AllGroups(Model* model) {
  std::vector<LinearGroup*> groups;
  for (Block& block : model->blocks) {
    for (LinearGroup* group : block.groups()) groups.push_back(group);
  }
  groups.push_back(&model->head);
  return groups;
}

void WarnOfUnmatched(const UnmatchedPatterns& unmatched, const Modifier& modifier, Logger& log) {
  const auto warn = [&](std::string_view what, const std::vector<std::string>& patterns) {
    if (patterns.empty()) return;
    log.Warning(fmt::format("{}: {} that match no layer: {}", modifier.class_name(), what,
                            fmt::join(patterns, ", ")));
  };
  warn("targets", unmatched.targets);
  warn("ignore entries", unmatched.ignore);
}

// Gives each layer of the target graph the scheme of the last modifier that matches it.
Status ResolveLayers(const Recipe& recipe, QuantizationPlan* plan, Logger& log) {
  for (const auto& modifier : recipe.modifiers) {
    if (modifier->quantization() == nullptr) continue;
    OCTAVO_ASSIGN_OR_RETURN(const SchemeResolver schemes,
                            SchemeResolver::Make(*modifier->quantization()));
    OCTAVO_ASSIGN_OR_RETURN(
        const UnmatchedPatterns unmatched,
        FindUnmatchedPatterns(*modifier->quantization(), plan->target.modules()));
    WarnOfUnmatched(unmatched, *modifier, log);
    int64_t matched = 0;
    for (LinearGroup* group : AllGroups(&plan->target)) {
      for (LinearLayer& layer : group->layers) {
        OCTAVO_ASSIGN_OR_RETURN(auto scheme, schemes.Resolve({layer.name, "Linear"}));
        if (!scheme || !scheme->weights) continue;
        layer.quantization = *std::move(scheme);
        plan->owners[layer.name] = modifier.get();
        ++matched;
      }
    }
    if (matched == 0) {
      return InvalidArgument(fmt::format("{}: its targets match no linear layer of the model",
                                         modifier->class_name()));
    }
    log.Info(fmt::format("{}: {} layers", modifier->class_name(), matched));
  }
  if (plan->owners.empty())
    return InvalidArgument("the recipe quantizes nothing: it has no quantizing modifier");
  return OkStatus();
}

// Each layer must have a scheme that runs, and layers that share an input the same one: engines run
// them as one.
Status CheckLayers(Model* target) {
  for (LinearGroup* group : AllGroups(target)) {
    for (const LinearLayer& layer : group->layers) {
      OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
      if (layer.quantization.weights && scheme->pack == nullptr) {
        return Unsupported(
            fmt::format("{}: {} checkpoints are read, but not made yet", layer.name, scheme->name));
      }
      const LinearLayer& first = group->layers.front();
      if (!SameQuantization(layer.quantization, first.quantization)) {
        return InvalidArgument(
            fmt::format("the recipe gives {} and {} different schemes, but engines run them as one "
                        "layer; target or ignore both",
                        first.name, layer.name));
      }
    }
  }
  const LinearLayer& head = target->head.layers.front();
  if (head.quantization.weights) {
    return Unsupported(fmt::format(
        "{} is targeted; quantizing the output head is not supported yet: add \"{}\" to the "
        "recipe's ignore list",
        head.name, head.name));
  }
  return OkStatus();
}

// quantization_config as the library saves it (checkpoint-format 1.3, 5.3): one group for each
// distinct scheme in the order in which layers first use them, and in `ignore` every linear layer
// that is not quantized, by name.
QuantizationConfig MakeConfig(Model* target) {
  QuantizationConfig config;
  for (LinearGroup* group : AllGroups(target)) {
    for (const LinearLayer& layer : group->layers) {
      if (!layer.quantization.weights) {
        config.ignore.push_back(layer.name);
        continue;
      }
      const auto known =
          std::find_if(config.config_groups.begin(), config.config_groups.end(),
                       [&](const auto& entry) { return entry.second == layer.quantization; });
      if (known == config.config_groups.end()) {
        config.config_groups.emplace_back(fmt::format("group_{}", config.config_groups.size()),
                                          layer.quantization);
      }
    }
  }
  config.format = CheckpointFormat(config);
  config.quantization_status = "compressed";
  config.version = kFormatVersion;
  return config;
}

// The source's tensors in their order, a quantized weight replaced by what its scheme declares.
Result<std::vector<PlannedTensor>> PlanTensors(const Checkpoint& checkpoint, Model* target) {
  std::map<std::string, const LinearLayer*> quantized;  // by the name of the weight
  for (LinearGroup* group : AllGroups(target)) {
    for (const LinearLayer& layer : group->layers) {
      if (layer.quantization.weights) quantized[layer.name + ".weight"] = &layer;
    }
  }
  std::vector<PlannedTensor> tensors;
  for (const std::string& name : checkpoint.Names()) {
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(name));
    const auto found = quantized.find(name);
    if (found == quantized.end()) {
      tensors.push_back({name, view.dtype, view.shape});
      continue;
    }
    const LinearLayer& layer = *found->second;
    OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
    for (const DeclaredTensor& declared : scheme->declare(layer)) {
      if (declared.suffix == "bias" || declared.optional) continue;
      tensors.push_back(
          {layer.name + "." + declared.suffix, declared.dtypes.front(), declared.shapes.front()});
    }
  }
  return tensors;
}

}  // namespace

Result<QuantizationPlan> MakePlan(const LoadedModel& source, const Recipe& recipe, Logger& log) {
  if (source.quantization()) {
    return Unsupported(source.checkpoint().folder().string() +
                       ": the model is quantized already; quantize the original instead");
  }
  QuantizationPlan plan;
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture,
                          FindArchitecture(source.checkpoint().config()));
  OCTAVO_ASSIGN_OR_RETURN(plan.target, BuildGraph(*architecture, source.model().spec, nullptr));
  OCTAVO_RETURN_IF_ERROR(ResolveLayers(recipe, &plan, log));
  OCTAVO_RETURN_IF_ERROR(CheckLayers(&plan.target));
  for (const auto& modifier : recipe.modifiers) {
    OCTAVO_RETURN_IF_ERROR(modifier->Check(plan.target, log).Annotate(modifier->class_name()));
    plan.needs.channel_range |= modifier->needs().channel_range;
    plan.needs.hessian |= modifier->needs().hessian;
  }
  plan.config = MakeConfig(&plan.target);
  OCTAVO_ASSIGN_OR_RETURN(plan.tensors, PlanTensors(source.checkpoint(), &plan.target));
  return plan;
}

}  // namespace octavo
