// AutoGPTQ and GPTQModel: `quant_method` gptq.
#include <fmt/format.h>

#include "quant/foreign/foreign_format.h"

namespace octavo {

namespace {

Result<QuantizationArgs> ParseWeights(const Value& json, std::string_view where) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t bits, json.RequireInt("bits"));
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8)
    return Unsupported(fmt::format("bits is {}, expected 2, 3, 4 or 8", bits));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t group_size, json.RequireInt("group_size"));
  if (group_size != -1 && group_size <= 0) {
    return InvalidArgument(fmt::format(
        "group_size is {}, expected -1 (a scale a channel) or a positive number", group_size));
  }
  OCTAVO_ASSIGN_OR_RETURN(const bool symmetric, json.GetBool("sym", true));
  OCTAVO_ASSIGN_OR_RETURN(const bool is_ordered, json.GetBool("desc_act", false));
  Value args;
  args.Set("num_bits", bits);
  args.Set("type", "int");
  args.Set("symmetric", symmetric);
  args.Set("strategy", group_size > 0 ? "group" : "channel");
  if (group_size > 0) {
    args.Set("group_size", group_size);
    // The columns of a group may be anywhere; a channel is one group.
    if (is_ordered) args.Set("actorder", "group");
  }
  return ParseQuantizationArgs(args, where);
}

// "gptq", whose stored zero points are one too small, or "gptq_v2", which has them as they are.
Result<std::string> ParseFormat(const Value& json) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string named, json.GetString("format", "gptq"));
  OCTAVO_ASSIGN_OR_RETURN(const std::string format, json.GetString("checkpoint_format", named));
  OCTAVO_ASSIGN_OR_RETURN(const bool is_marlin, json.GetBool("is_marlin_format", false));
  if (!is_marlin && (format == "gptq" || format == "gptq_v2")) return format;
  return Unsupported(
      fmt::format("checkpoint_format is {}, which only its own kernels read; expected gptq or "
                  "gptq_v2: save the model again in one of them",
                  is_marlin ? "marlin" : "\"" + format + "\""));
}

// Of GPTQModel: regular expressions over layers; "-:" leaves them out, anything else gives them
// other settings.
Status AddDynamic(const Value& json, std::vector<std::string>* ignore) {
  const Value* dynamic = json.Find("dynamic");
  if (dynamic == nullptr || dynamic->is_null()) return OkStatus();
  if (!dynamic->is_object())
    return InvalidArgument(fmt::format("dynamic is {}, expected an object", dynamic->type_name()));
  for (const auto& [pattern, settings] : dynamic->as_object()) {
    if (!pattern.starts_with("-:"))
      return Unsupported(
          fmt::format("dynamic.\"{}\": settings of single layers are not supported", pattern));
    ignore->push_back("re:" + pattern.substr(2));
  }
  return OkStatus();
}

// [["self_attn.q_proj"], ["mlp.gate_proj"]]: the layers that are quantized, without their block's
// name; all where there is no list.
Result<std::vector<std::string>> ParseTargets(const Value& json) {
  std::vector<std::string> targets;
  const Value* sets = json.Find("modules_in_block_to_quantize");
  if (sets == nullptr || sets->is_null()) return targets;
  const auto refuse = [] {
    return InvalidArgument("modules_in_block_to_quantize: expected lists of lists of names");
  };
  if (!sets->is_array()) return refuse();
  for (const Value& set : sets->as_array()) {
    if (!set.is_array()) return refuse();
    for (const Value& name : set.as_array()) {
      if (!name.is_string()) return refuse();
      targets.push_back("re:.*\\." + EscapeRegex(name.as_string()) + "$");
    }
  }
  return targets;
}

Result<QuantizationConfig> ParseConfig(const Value& json) {
  QuantizationScheme scheme;
  OCTAVO_ASSIGN_OR_RETURN(scheme.weights, ParseWeights(json, "weights"));
  OCTAVO_ASSIGN_OR_RETURN(scheme.format, ParseFormat(json));
  OCTAVO_ASSIGN_OR_RETURN(scheme.targets, ParseTargets(json));
  OCTAVO_ASSIGN_OR_RETURN(const bool quantizes_head, json.GetBool("lm_head", false));
  std::vector<std::string> ignore;
  if (!quantizes_head) ignore.emplace_back("lm_head");
  if (quantizes_head && !scheme.targets.empty()) scheme.targets.emplace_back("lm_head");
  OCTAVO_RETURN_IF_ERROR(AddDynamic(json, &ignore));
  return OneGroup(std::move(scheme), std::move(ignore), "gptq");
}

Result<QuantizationConfig> Parse(const Value& json, std::string_view where) {
  auto config = ParseConfig(json);
  if (!config.ok()) return config.status().Annotate(where);
  return config;
}

}  // namespace

extern const ForeignFormat kGptqFormat;
const ForeignFormat kGptqFormat = {.quant_method = "gptq", .parse = Parse};

}  // namespace octavo
