// SpinQuantModifier: hidden states, heads and what enters down_proj are rotated, so that no channel
// stands out; most of it is folded into weights (quantization 5.6). It only transforms; a
// quantizing modifier must follow.
#include <fmt/format.h>

#include "compress/modifier.h"
#include "compress/modifiers/quantization_settings.h"
#include "compress/modifiers/transform_settings.h"

namespace octavo {

namespace {

using Patterns = std::vector<std::string>;

// Which modules play which part.
struct SpinMapping {
  Patterns embedding, attention, q, k, v, o, mlp_in, mlp_out, head;
};

// Every module whose name ends as `name` does: "re:.*q_proj$".
std::string EndsLike(std::string_view name) {
  return fmt::format("re:.*{}$", name.substr(name.rfind('.') + 1));
}

SpinMapping MappingOf(const Model& graph) {
  const Block& block = graph.blocks.front();
  SpinMapping mapping{.embedding = {EndsLike(graph.names.embedding)},
                      .attention = {EndsLike(block.attention)},
                      .q = {EndsLike(block.qkv.layers[0].name)},
                      .k = {EndsLike(block.qkv.layers[1].name)},
                      .v = {EndsLike(block.qkv.layers[2].name)},
                      .o = {EndsLike(block.attention_output.layers.front().name)},
                      .mlp_in = {},
                      .mlp_out = {EndsLike(block.down.layers.front().name)},
                      .head = {graph.head.layers.front().name}};
  // The library names up before gate.
  for (size_t i = block.gate_up.layers.size(); i > 0; --i)
    mapping.mlp_in.push_back(EndsLike(block.gate_up.layers[i - 1].name));
  return mapping;
}

Patterns Join(std::initializer_list<const Patterns*> parts) {
  Patterns all;
  for (const Patterns* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// `given` in place of what the graph says, where it says something.
Status TakeMapping(const Value& given, const std::string& where, SpinMapping* mapping) {
  const std::pair<std::string_view, Patterns*> parts[] = {{"embedding", &mapping->embedding},
                                                          {"attn", &mapping->attention},
                                                          {"attn_q", &mapping->q},
                                                          {"attn_k", &mapping->k},
                                                          {"attn_v", &mapping->v},
                                                          {"attn_o", &mapping->o},
                                                          {"mlp_in", &mapping->mlp_in},
                                                          {"mlp_out", &mapping->mlp_out},
                                                          {"lm_head", &mapping->head}};
  std::vector<std::string> keys = {"attn_head_dim"};
  for (const auto& [key, patterns] : parts) keys.emplace_back(key);
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(given, where, keys));
  for (const auto& [key, patterns] : parts) {
    OCTAVO_ASSIGN_OR_RETURN(*patterns, object.Strings(key, *patterns));
  }
  return OkStatus();
}

class SpinQuantModifier : public Modifier {
 public:
  SpinQuantModifier(TransformSettings settings, Value mappings, std::string where, Value saved)
      : settings_(std::move(settings)),
        mappings_(std::move(mappings)),
        where_mappings_(std::move(where)),
        saved_(std::move(saved)) {}

  std::string_view class_name() const override { return "SpinQuantModifier"; }
  Value settings() const override { return saved_; }

  Result<std::optional<ModelTransforms>> Transforms(const Model& graph) const override {
    ModelTransforms transforms{.uses = {}, .folds_norms = true, .seed = settings_.seed};
    if (settings_.transform_config.is_object()) {
      OCTAVO_ASSIGN_OR_RETURN(transforms.uses,
                              ParseTransforms(settings_.transform_config, "transform_config"));
      return std::optional(std::move(transforms));
    }
    OCTAVO_RETURN_IF_ERROR(CheckRotatable(graph));
    SpinMapping mapping = MappingOf(graph);
    if (mappings_.is_object())
      OCTAVO_RETURN_IF_ERROR(TakeMapping(mappings_, where_mappings_, &mapping));
    OCTAVO_ASSIGN_OR_RETURN(transforms.uses, UsesOf(mapping, graph.spec.head_dim));
    return std::optional(std::move(transforms));
  }

  Status Check(const Model&, Logger&) const override { return OkStatus(); }
  Status Apply(BlockWork*, const Context&) const override { return OkStatus(); }

 private:
  // What of a family's block rotated hidden states would not pass unchanged.
  static Status CheckRotatable(const Model& graph) {
    std::string why;
    if (graph.spec.post_norms || !graph.spec.pre_norms)
      why = "its norms behind attention and MLP weigh channels of the hidden states";
    if (graph.blocks.front().qkv.layers.size() != 3)
      why = "its queries, keys and values are one layer, whose outputs rotate differently";
    if (why.empty()) return OkStatus();
    return Unsupported(fmt::format(
        "SpinQuantModifier: {} cannot be rotated so: {}; QuIPModifier rotates each layer by itself",
        graph.spec.architecture, why));
  }

  Result<std::vector<TransformUse>> UsesOf(const SpinMapping& mapping, int64_t head_dim) const {
    using enum TransformLocation;
    struct Planned {
      std::string_view rotation;
      bool of_heads;
      TransformLocation location;
      bool inverse;
      Patterns targets;
    };
    const Planned all[] = {
        {"R1", false, kWeightOutput, false,
         Join({&mapping.embedding, &mapping.o, &mapping.mlp_out})},
        {"R1", false, kWeightInput, true,
         Join({&mapping.q, &mapping.k, &mapping.v, &mapping.mlp_in, &mapping.head})},
        {"R2", true, kWeightOutput, false, mapping.v},
        {"R2", true, kWeightInput, true, mapping.o},
        {"R3", true, kQuery, false, mapping.attention},
        {"R3", true, kKey, false, mapping.attention},
        {"R4", false, kInput, false, mapping.mlp_out},
        {"R4", false, kWeightInput, true, mapping.mlp_out}};
    std::vector<TransformUse> uses;
    for (const Planned& planned : all) {
      if (!settings_.Has(planned.rotation)) continue;
      OCTAVO_ASSIGN_OR_RETURN(
          TransformUse use,
          settings_.Use(planned.rotation, planned.location, planned.inverse, planned.targets, {}));
      if (planned.of_heads) use.block = head_dim;
      uses.push_back(std::move(use));
    }
    return uses;
  }

  TransformSettings settings_;
  Value mappings_;  // null: those of the graph
  std::string where_mappings_;
  Value saved_;
};

Result<std::unique_ptr<Modifier>> Parse(const Value& settings, std::string_view where,
                                        Logger& log) {
  std::vector<std::string> keys = TransformKeys();
  keys.insert(keys.end(), {"mappings", "norm_mappings"});
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object, StrictObject::Make(settings, where, keys));
  OCTAVO_ASSIGN_OR_RETURN(TransformSettings parsed,
                          ParseTransformSettings(object,
                                                 {.known_rotations = {"R1", "R2", "R3", "R4"},
                                                  .rotations = {"R1", "R2"},
                                                  .transform_type = "hadamard"},
                                                 log));
  if (object.Has("norm_mappings")) {
    log.Warning(object.Path("norm_mappings") +
                " has no effect: each norm goes into all layers that it feeds");
  }
  Value mappings;
  const std::string where_mappings = object.Path("mappings");
  if (const Value* given = object.Find("mappings")) {
    SpinMapping unused;
    OCTAVO_RETURN_IF_ERROR(TakeMapping(*given, where_mappings, &unused));
    mappings = *given;
  }
  Value saved = parsed.Saved();
  if (mappings.is_object()) saved.Set("mappings", mappings);
  return std::unique_ptr<Modifier>(std::make_unique<SpinQuantModifier>(
      std::move(parsed), std::move(mappings), where_mappings, std::move(saved)));
}

}  // namespace

extern const ModifierClass kSpinQuantModifier;
const ModifierClass kSpinQuantModifier = {"SpinQuantModifier", Parse};

}  // namespace octavo
