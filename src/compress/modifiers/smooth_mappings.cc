#include "compress/modifiers/smooth_mappings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quant/strict_object.h"

namespace octavo {

namespace {

constexpr std::string_view kNormClass = "RMSNorm";
constexpr std::string_view kLinearClass = "Linear";

Result<bool> MatchesAny(const std::vector<ModulePattern>& patterns, std::string_view name,
                        std::string_view class_name) {
  for (const ModulePattern& pattern : patterns) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match({name, class_name}));
    if (kind != MatchKind::kNone) return true;
  }
  return false;
}

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

std::string Join(const std::vector<ModulePattern>& patterns) {
  std::vector<std::string> texts;
  texts.reserve(patterns.size());
  for (const ModulePattern& pattern : patterns) texts.push_back(pattern.text());
  return fmt::format("{}", fmt::join(texts, ", "));
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
  mapping.text =
      fmt::format("[[{}], {}]", Join(mapping.balance_layers), Join(mapping.smooth_layer));
  return mapping;
}

struct NormOfGroup {
  std::string_view norm;  // empty: no norm makes the group's input
  const LinearGroup* group;
};

std::vector<NormOfGroup> NormsOf(const Block& block) {
  return {{block.attention_norm.name, &block.qkv},
          {{}, &block.attention_output},
          {block.mlp_norm.name, &block.gate_up},
          {{}, &block.down}};
}

std::string LayerNames(const LinearGroup& group) {
  std::vector<std::string_view> names;
  names.reserve(group.layers.size());
  for (const LinearLayer& layer : group.layers) names.push_back(layer.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// One mapping against a model.
class MappingCheck {
 public:
  MappingCheck(const SmoothMapping& mapping, const Model& graph)
      : mapping_(mapping), graph_(graph) {}

  // The number of norms that the mapping smooths.
  Result<int64_t> Run() const {
    int64_t smoothed = 0;
    for (const Block& block : graph_.blocks) {
      OCTAVO_ASSIGN_OR_RETURN(const int64_t in_block, CheckBlock(block));
      smoothed += in_block;
    }
    if (smoothed == 0) return NothingMatched();
    return smoothed;
  }

 private:
  Result<int64_t> CheckBlock(const Block& block) const {
    int64_t smoothed = 0;
    std::string_view stray;               // matches, but no norm of the mapping feeds it
    const LinearGroup* unused = nullptr;  // a norm of the mapping feeds it, but no layer matches
    std::string_view unused_norm;
    for (const auto& [norm, group] : NormsOf(block)) {
      bool is_smooth = false;
      if (!norm.empty()) {
        OCTAVO_ASSIGN_OR_RETURN(is_smooth, MatchesAny(mapping_.smooth_layer, norm, kNormClass));
      }
      std::string_view left_out;
      size_t matched = 0;
      for (const LinearLayer& layer : group->layers) {
        OCTAVO_ASSIGN_OR_RETURN(const bool balanced,
                                MatchesAny(mapping_.balance_layers, layer.name, kLinearClass));
        matched += balanced;
        if (!balanced) left_out = layer.name;
        if (balanced && !is_smooth) stray = layer.name;
      }
      if (!is_smooth) continue;
      if (matched == 0) {
        unused = group;
        unused_norm = norm;
      } else if (!left_out.empty()) {
        return Refuse(
            fmt::format("leaves out {}, which {} feeds too and would be wrong after it "
                        "is smoothed; name all of {}",
                        left_out, norm, LayerNames(*group)));
      } else {
        ++smoothed;
      }
    }
    if (stray.empty()) return smoothed;
    if (smoothed > 0)
      return Refuse(
          fmt::format("names {}, which its norm does not feed; name only the layers that read the "
                      "norm's output",
                      stray));
    if (unused != nullptr)
      return Refuse(
          fmt::format("names {}, but {} feeds {}", stray, unused_norm, LayerNames(*unused)));
    return smoothed;
  }

  Result<int64_t> NothingMatched() const {
    const Block& block = graph_.blocks.front();
    const std::string has = fmt::format(
        "the model's norms are named like {} (feeds {}) and {} ({})", block.attention_norm.name,
        LayerNames(block.qkv), block.mlp_norm.name, LayerNames(block.gate_up));
    OCTAVO_ASSIGN_OR_RETURN(const bool is_final,
                            MatchesAny(mapping_.smooth_layer, graph_.names.final_norm, kNormClass));
    if (is_final)
      return Refuse("smooths the final norm into the head, which is not supported; " + has);
    for (const Block& any : graph_.blocks) {
      for (const LinearGroup* group : any.groups()) {
        for (const LinearLayer& layer : group->layers) {
          OCTAVO_ASSIGN_OR_RETURN(const bool is_linear,
                                  MatchesAny(mapping_.smooth_layer, layer.name, kLinearClass));
          if (!is_linear) continue;
          return Refuse(
              fmt::format("smooths {}, a linear layer of {} outputs; only a norm can be "
                          "smoothed into the layers that it feeds: {}",
                          layer.name, layer.n, has));
        }
      }
    }
    return Refuse("matches no norm, or none of the layers behind it; " + has);
  }

  Status Refuse(std::string_view reason) const {
    return InvalidArgument(fmt::format("the mapping {} {}", mapping_.text, reason));
  }

  const SmoothMapping& mapping_;
  const Model& graph_;
};

}  // namespace

Result<SmoothMappings> SmoothMappings::Parse(const Value* mappings, std::string_view where,
                                             const Value* ignore, std::string_view where_ignore) {
  SmoothMappings parsed;
  if (ignore != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(parsed.ignore_, ParsePatterns(*ignore, where_ignore));
  }
  if (mappings == nullptr) return parsed;
  if (!mappings->is_array())
    return InvalidArgument(
        fmt::format("{} is {}, expected a list of [[patterns of the layers], "
                    "pattern of the norm]",
                    where, mappings->type_name()));
  parsed.all_norms_ = false;
  for (const Value& value : mappings->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(
        SmoothMapping mapping,
        ParseMapping(value, fmt::format("{}[{}]", where, parsed.mappings_.size())));
    parsed.mappings_.push_back(std::move(mapping));
  }
  if (parsed.mappings_.empty())
    return InvalidArgument(fmt::format(
        "{} is empty, so nothing would be smoothed; leave it out for every norm", where));
  return parsed;
}

Result<int64_t> SmoothMappings::Check(const Model& graph) const {
  if (!graph.spec.pre_norms) {
    return InvalidArgument(
        fmt::format("the norms of {} are behind attention and MLP, none feeds linear layers, so "
                    "nothing can be smoothed; leave the modifier out",
                    graph.spec.architecture));
  }
  for (const SmoothMapping& mapping : mappings_) {
    const auto smoothed = MappingCheck(mapping, graph).Run();
    if (!smoothed.ok()) return smoothed.status();
  }
  int64_t norms = 0;
  for (const Block& block : graph.blocks) {
    for (const auto& [norm, group] : NormsOf(block)) {
      if (norm.empty()) continue;
      std::vector<std::string_view> names;
      names.reserve(group->layers.size());
      for (const LinearLayer& layer : group->layers) names.push_back(layer.name);
      OCTAVO_ASSIGN_OR_RETURN(const bool applies, Applies(norm, names));
      norms += applies;
    }
  }
  if (norms == 0)
    return InvalidArgument(
        "every norm is ignored, so nothing would be smoothed; remove the "
        "modifier, or shorten its ignore list");
  return norms;
}

Result<bool> SmoothMappings::Applies(std::string_view norm,
                                     const std::vector<std::string_view>& layers) const {
  bool applies = all_norms_;
  for (const SmoothMapping& mapping : mappings_) {
    OCTAVO_ASSIGN_OR_RETURN(const bool smooths, MatchesAny(mapping.smooth_layer, norm, kNormClass));
    OCTAVO_ASSIGN_OR_RETURN(const bool balances,
                            MatchesAny(mapping.balance_layers, layers.front(), kLinearClass));
    applies = applies || (smooths && balances);
  }
  if (!applies) return false;
  // Left alone only when the norm and all its layers are ignored.
  OCTAVO_ASSIGN_OR_RETURN(bool ignored, MatchesAny(ignore_, norm, kNormClass));
  for (std::string_view layer : layers) {
    OCTAVO_ASSIGN_OR_RETURN(const bool one, MatchesAny(ignore_, layer, kLinearClass));
    ignored = ignored && one;
  }
  return !ignored;
}

}  // namespace octavo
