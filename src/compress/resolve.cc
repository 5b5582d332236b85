#include "compress/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "quant/scale_grid.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

bool CanBeMade(const QuantizationScheme& scheme) {
  return std::any_of(AllSchemes().begin(), AllSchemes().end(), [&](const Scheme* candidate) {
    return candidate->pack != nullptr && candidate->differences(scheme).empty();
  });
}

std::vector<std::string> MakeablePresets() {
  std::vector<std::string> names;
  for (const std::string& name : PresetNames()) {
    if (CanBeMade(PresetScheme(name, {}).value())) names.push_back(name);
  }
  return names;
}

// "W8A8", or what the scheme declares; for messages.
std::string Describe(const QuantizationScheme& scheme) {
  if (!scheme.weights) return "not quantized";
  QuantizationScheme unnamed = scheme;
  if (scheme.format == InferFormat(scheme)) unnamed.format.reset();
  return PresetNameOf(unnamed).value_or(SchemeString(scheme));
}

// Each scheme that the modifier declares must be one that can be made.
Status CheckSchemes(const Modifier& modifier) {
  for (const auto& [name, scheme] : modifier.quantization()->config_groups) {
    const std::string where = fmt::format("{}: {}", modifier.class_name(), name);
    if (!scheme.weights || CanBeMade(scheme)) continue;
    LinearLayer layer;
    layer.name = where;
    layer.quantization = scheme;
    const auto selected = SelectScheme(layer);
    const std::string reason =
        selected.ok() ? fmt::format("{} checkpoints are read, but not made yet", (*selected)->name)
                      : selected.status().message();
    return Unsupported(fmt::format("{} ({}) cannot be made: {}. Presets that can be made: {}",
                                   where, Describe(scheme), reason,
                                   fmt::join(MakeablePresets(), ", ")));
  }
  return OkStatus();
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

Status NothingMatched(const Modifier& modifier, const Model& target) {
  std::vector<std::string> targets;
  for (const auto& [name, scheme] : modifier.quantization()->config_groups) {
    targets.insert(targets.end(), scheme.targets.begin(), scheme.targets.end());
  }
  return InvalidArgument(fmt::format(
      "{}: its targets ({}), without what it ignores ({}), match no linear layer of the model; "
      "layers are named like {} and {}, or all together \"Linear\"",
      modifier.class_name(), fmt::join(targets, ", "),
      fmt::join(modifier.quantization()->ignore, ", "),
      target.blocks.front().qkv.layers.front().name, target.head.layers.front().name));
}

// All that targets and ignore may name.
std::vector<ModuleName> NamedModules(const Model& target) {
  std::vector<ModuleName> modules = target.modules();
  const std::vector<ModuleName> attention = target.attention_modules();
  modules.insert(modules.end(), attention.begin(), attention.end());
  return modules;
}

// What the config says of attention and of the cache, which must be one thing for keys and values
// of all blocks. The number of modules that it speaks of.
Result<int64_t> ResolveAttention(const QuantizationConfig& config, Model* target) {
  const auto check = [](const QuantizationArgs& args, std::string_view what) -> Status {
    const std::string reason = WhyUnsupportedForAttention(args);
    if (reason.empty()) return OkStatus();
    return Unsupported(fmt::format(
        "{} ({}) cannot be made: {}; declare {{num_bits: 8, type: float (or int), strategy: tensor "
        "(or attn_head)}}",
        what, args.ToString(), reason));
  };
  OCTAVO_RETURN_IF_ERROR(DeclareAttention(config, target));
  int64_t matched = 0;
  for (const Block& block : target->blocks) {
    const auto& cache = block.cache_quantization;
    if (block.query_quantization) {
      ++matched;
      OCTAVO_RETURN_IF_ERROR(check(*block.query_quantization->input_activations, block.attention));
    }
    if (cache) OCTAVO_RETURN_IF_ERROR(check(*cache, "kv_cache_scheme"));
    if (!block.query_quantization) continue;
    const QuantizationArgs& query = *block.query_quantization->input_activations;
    if (query == *cache) continue;
    return InvalidArgument(fmt::format(
        "{} is quantized as {}, but kv_cache_scheme is {}: keys and values have one scheme; leave "
        "kv_cache_scheme out, or make both the same",
        block.attention, query.ToString(), cache->ToString()));
  }
  const auto without = std::find_if(target->blocks.begin(), target->blocks.end(),
                                    [](const Block& block) { return !block.cache_quantization; });
  if (matched > 0 && without != target->blocks.end()) {
    return InvalidArgument(fmt::format(
        "attention is quantized, but not that of {}: engines keep the keys and values of all "
        "blocks alike; target the class, {}, or add kv_cache_scheme",
        without->attention, target->attention_class));
  }
  return config.kv_cache_scheme ? std::ssize(target->blocks) : matched;
}

// Engines look rows of an embedding up and dequantize them, and can do no more.
Status CheckEmbedding(const LinearLayer& layer) {
  const QuantizationScheme& scheme = layer.quantization;
  const bool looked_up = scheme.weights && !scheme.input_activations &&
                         !scheme.output_activations &&
                         scheme.weights->type == QuantizationType::kInt &&
                         (scheme.weights->strategy == Strategy::kChannel ||
                          scheme.weights->strategy == Strategy::kGroup);
  if (looked_up) return OkStatus();
  return Unsupported(fmt::format(
      "{} is targeted with {}; \"compressed-tensors embeddings only support weight-only INT "
      "group/channel (WNA16)\" (vLLM): give it a group of its own in config_groups (as W8A16 or "
      "W4A16), target only \"Linear\", or add \"{}\" to the ignore list",
      layer.name, Describe(scheme), layer.name));
}

Status ResolveModifier(const Modifier& modifier, Model* target, LayerOwners* owners, Logger& log) {
  const QuantizationConfig& config = *modifier.quantization();
  OCTAVO_RETURN_IF_ERROR(CheckSchemes(modifier));
  OCTAVO_ASSIGN_OR_RETURN(const SchemeResolver schemes, SchemeResolver::Make(config));
  OCTAVO_ASSIGN_OR_RETURN(const UnmatchedPatterns unmatched,
                          FindUnmatchedPatterns(config, NamedModules(*target)));
  WarnOfUnmatched(unmatched, modifier, log);
  int64_t matched = 0;
  OCTAVO_ASSIGN_OR_RETURN(auto embedding, schemes.Resolve({target->names.embedding, "Embedding"}));
  if (embedding) {
    LinearLayer& layer = target->embedding_layer;
    layer.quantization = *std::move(embedding);
    OCTAVO_RETURN_IF_ERROR(CheckEmbedding(layer).Annotate(std::string(modifier.class_name())));
    (*owners)[layer.name] = &modifier;
    ++matched;
  }
  for (LinearGroup* group : AllGroups(target)) {
    for (LinearLayer& layer : group->layers) {
      OCTAVO_ASSIGN_OR_RETURN(auto scheme, schemes.Resolve({layer.name, "Linear"}));
      if (!scheme) continue;
      if (!scheme->weights) {
        return Unsupported(fmt::format(
            "{}: the activations of {} would be quantized, but not its weights ({}); give the "
            "group weights, or target attention alone ({})",
            modifier.class_name(), layer.name, SchemeString(*scheme), target->attention_class));
      }
      layer.quantization = *std::move(scheme);
      (*owners)[layer.name] = &modifier;
      ++matched;
    }
  }
  auto attention = ResolveAttention(config, target);
  if (!attention.ok()) return attention.status().Annotate(modifier.class_name());
  if (matched + *attention == 0) return NothingMatched(modifier, *target);
  log.Info(fmt::format("{}: {} layers{}", modifier.class_name(), matched,
                       *attention > 0 ? fmt::format(", keys and values of {}", *attention) : ""));
  return OkStatus();
}

// Layers that share an input must have the same scheme: engines run them as one.
Status CheckGroups(Model* target) {
  for (const LinearGroup* group : AllGroups(target)) {
    const LinearLayer& first = group->layers.front();
    for (const LinearLayer& layer : group->layers) {
      if (SameQuantization(layer.quantization, first.quantization)) continue;
      return InvalidArgument(fmt::format(
          "the recipe gives {} and {} different schemes ({}; {}), but engines run them as one "
          "layer; give both the same, or ignore both",
          first.name, layer.name, Describe(first.quantization), Describe(layer.quantization)));
    }
  }
  return OkStatus();
}

// Groups of weights must divide the columns: all layers in which they do not, those that differ
// only in their block once, with what would fit.
Status CheckGroupSizes(Model* target) {
  std::vector<std::string> misfits;
  const LinearLayer& embedding = target->embedding_layer;
  if (embedding.quantization.weights) {
    const auto grid = MakeScaleGrid(*embedding.quantization.weights, embedding.n, embedding.k);
    if (!grid.ok())
      misfits.push_back(fmt::format("{}: {}", embedding.name, grid.status().message()));
  }
  for (const LinearGroup* group : AllGroups(target)) {
    for (const LinearLayer& layer : group->layers) {
      if (!layer.quantization.weights) continue;
      const auto grid = MakeScaleGrid(*layer.quantization.weights, layer.n, layer.k);
      if (grid.ok()) continue;
      const bool in_a_later_block = target->blocks.size() > 1 && group != &target->head &&
                                    !layer.name.starts_with(target->blocks.front().name + ".");
      if (in_a_later_block) continue;
      misfits.push_back(fmt::format("{}: {}", layer.name, grid.status().message()));
    }
  }
  if (misfits.empty()) return OkStatus();
  return InvalidArgument(fmt::format(
      "{} (and so in the other blocks); the recipe's group_size or --group-size sets it",
      fmt::join(misfits, "; ")));
}

}  // namespace

std::vector<LinearGroup*> AllGroups(Model* model) {
  std::vector<LinearGroup*> groups;
  for (Block& block : model->blocks) {
    for (LinearGroup* group : block.groups()) groups.push_back(group);
  }
  groups.push_back(&model->head);
  return groups;
}

Result<LayerOwners> ResolveRecipe(const Recipe& recipe, Model* target, Logger& log) {
  LayerOwners owners;
  for (const auto& modifier : recipe.modifiers) {
    if (modifier->quantization() == nullptr) continue;
    OCTAVO_RETURN_IF_ERROR(ResolveModifier(*modifier, target, &owners, log));
  }
  const bool quantizes_cache = target->blocks.front().cache_quantization.has_value();
  if (owners.empty() && !quantizes_cache)
    return InvalidArgument(
        "the recipe quantizes nothing: add a QuantizationModifier or GPTQModifier");
  OCTAVO_RETURN_IF_ERROR(CheckGroups(target));
  OCTAVO_RETURN_IF_ERROR(CheckGroupSizes(target));
  return owners;
}

}  // namespace octavo
