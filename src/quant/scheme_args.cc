#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "quant/args.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

Result<std::optional<QuantizationArgs>> ParseOptionalArgs(const StrictObject& object,
                                                          std::string_view key) {
  const Value* value = object.Find(key);
  if (value == nullptr) return std::optional<QuantizationArgs>();
  OCTAVO_ASSIGN_OR_RETURN(QuantizationArgs args, ParseQuantizationArgs(*value, object.Path(key)));
  return std::optional<QuantizationArgs>(std::move(args));
}

// R13, R14.
Status CheckActivations(const std::optional<QuantizationArgs>& args, bool is_input,
                        const std::string& where) {
  if (!args) return OkStatus();
  const bool unsupported =
      args->strategy == Strategy::kChannel || args->strategy == Strategy::kBlock;
  if (is_input && unsupported)
    return InvalidArgument(
        fmt::format("{}: unsupported activation strategy {}, expected token, tensor, group, "
                    "tensor_group or attn_head",
                    where, StrategyName(args->strategy)));
  if (args->actorder != ActOrder::kNone)
    return InvalidArgument(where + ": actorder is for weights only");
  return OkStatus();
}

std::string ArgsOrNone(const std::optional<QuantizationArgs>& args) {
  return args ? args->ToString() : "none";
}

// Without what only calibration reads.
std::optional<QuantizationArgs> ForComputing(std::optional<QuantizationArgs> args) {
  if (args) {
    args->observer.reset();
    args->observer_kwargs = Value::MakeObject();
    if (args->actorder == ActOrder::kWeight) args->actorder = ActOrder::kNone;
    args->actorder_spelling.clear();
    if (args->group_size.value_or(0) <= 0) args->group_size.reset();
  }
  return args;
}

}  // namespace

Result<QuantizationScheme> ParseQuantizationScheme(const Value& json, std::string_view where) {
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object,
                          StrictObject::Make(json, where,
                                             {"targets", "weights", "input_activations",
                                              "output_activations", "format"}));
  QuantizationScheme scheme;
  if (!object.Has("targets"))
    return InvalidArgument(object.Path("targets") + " is missing, expected a list of strings");
  OCTAVO_ASSIGN_OR_RETURN(scheme.targets, object.Strings("targets", {}));
  OCTAVO_ASSIGN_OR_RETURN(scheme.weights, ParseOptionalArgs(object, "weights"));
  OCTAVO_ASSIGN_OR_RETURN(scheme.input_activations, ParseOptionalArgs(object, "input_activations"));
  OCTAVO_ASSIGN_OR_RETURN(scheme.output_activations,
                          ParseOptionalArgs(object, "output_activations"));
  OCTAVO_RETURN_IF_ERROR(
      CheckActivations(scheme.input_activations, true, object.Path("input_activations")));
  OCTAVO_RETURN_IF_ERROR(
      CheckActivations(scheme.output_activations, false, object.Path("output_activations")));
  if (object.Has("format")) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string format, object.String("format", ""));
    const std::vector<std::string> known = FormatNames();
    if (std::find(known.begin(), known.end(), format) == known.end())
      return InvalidArgument(fmt::format("{}: \"{}\" is no format of a group{}",
                                         object.Path("format"), format, DidYouMean(format, known)));
    scheme.format = format;
  }
  return scheme;
}

Value ToValue(const QuantizationScheme& scheme) {
  const auto args_or_null = [](const std::optional<QuantizationArgs>& args) {
    return args ? ToValue(*args) : Value();
  };
  Value json;
  json.Set("format", scheme.format ? Value(*scheme.format) : Value());
  json.Set("input_activations", args_or_null(scheme.input_activations));
  json.Set("output_activations", args_or_null(scheme.output_activations));
  json.Set("targets", Value::Array(scheme.targets.begin(), scheme.targets.end()));
  json.Set("weights", args_or_null(scheme.weights));
  return json;
}

bool SameQuantization(const QuantizationScheme& a, const QuantizationScheme& b) {
  return ForComputing(a.weights) == ForComputing(b.weights) &&
         ForComputing(a.input_activations) == ForComputing(b.input_activations) &&
         ForComputing(a.output_activations) == ForComputing(b.output_activations) &&
         a.format == b.format;
}

std::string SchemeString(const QuantizationScheme& scheme) {
  return fmt::format("weights: {}; input: {}; output: {}; format: {}", ArgsOrNone(scheme.weights),
                     ArgsOrNone(scheme.input_activations), ArgsOrNone(scheme.output_activations),
                     scheme.format.value_or("not named"));
}

void FillDefaultObservers(QuantizationScheme* scheme) {
  if (scheme->weights && !scheme->weights->observer)
    scheme->weights->observer = "memoryless_minmax";
  for (auto* activations : {&scheme->input_activations, &scheme->output_activations}) {
    if (!activations->has_value()) continue;
    QuantizationArgs& args = **activations;
    if (args.dynamic == Dynamic::kTrue) {
      args.observer.reset();
    } else if (!args.observer) {
      args.observer = "static_minmax";
    }
  }
}

std::vector<std::string> FormatNames() {
  return {"dense",          "int-quantized",        "float-quantized",      "naive-quantized",
          "pack-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized",
          "marlin-24",      "sparse-bitmask",       "sparse-24-bitmask"};
}

std::string InferFormat(const QuantizationScheme& scheme) {
  if (!scheme.weights) return "dense";
  const QuantizationArgs& weights = *scheme.weights;
  const int64_t group = weights.group_size.value_or(0);
  const bool has_inputs = scheme.input_activations.has_value();
  if (weights.type == QuantizationType::kFloat) {
    if (weights.num_bits == 4 && group == 32) return "mxfp4-pack-quantized";
    if (weights.num_bits == 8 && group == 32 && weights.scale_dtype == "torch.uint8")
      return "mxfp8-quantized";
    if (weights.num_bits == 4 && group == 16) return "nvfp4-pack-quantized";
    return has_inputs ? "float-quantized" : "naive-quantized";
  }
  if (has_inputs) return "int-quantized";
  return weights.num_bits <= 8 ? "pack-quantized" : "naive-quantized";
}

}  // namespace octavo
