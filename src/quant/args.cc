#include "quant/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <span>

#include "base/suggest.h"
#include "quant/strict_object.h"

namespace octavo {

namespace {

template <typename T>
struct Named {
  std::string_view name;
  T value;
};

constexpr std::array<Named<QuantizationType>, 2> kTypes = {{
    {"int", QuantizationType::kInt},
    {"float", QuantizationType::kFloat},
}};
constexpr std::array<Named<Strategy>, 7> kStrategies = {{
    {"tensor", Strategy::kTensor},
    {"channel", Strategy::kChannel},
    {"group", Strategy::kGroup},
    {"block", Strategy::kBlock},
    {"token", Strategy::kToken},
    {"tensor_group", Strategy::kTensorGroup},
    {"attn_head", Strategy::kAttnHead},
}};
constexpr std::array<Named<ActOrder>, 4> kActOrders = {{
    {"weight", ActOrder::kWeight},
    {"static", ActOrder::kWeight},
    {"group", ActOrder::kGroup},
    {"dynamic", ActOrder::kGroup},
}};
constexpr std::array<std::string_view, 12> kDTypes = {
    "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "bfloat16", "float16", "float32",
    "float64",       "uint8",       "int8",           "int16",    "int32",   "int64"};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

template <typename T, size_t N>
Result<T> ParseName(std::string_view where, std::string_view text,
                    const std::array<Named<T>, N>& table) {
  const std::string lower = Lower(text);
  std::vector<std::string> names;
  for (const Named<T>& entry : table) {
    if (entry.name == lower) return entry.value;
    names.emplace_back(entry.name);
  }
  return InvalidArgument(fmt::format("{}: \"{}\" is unknown{}; known: {}", where, text,
                                     DidYouMean(lower, names), fmt::join(names, ", ")));
}

Result<std::optional<int64_t>> ParseGroupSize(const StrictObject& object) {
  if (!object.Has("group_size")) return std::optional<int64_t>();
  OCTAVO_ASSIGN_OR_RETURN(const int64_t size, object.Int("group_size", 0));
  if (size < -1)
    return InvalidArgument(
        fmt::format("{}.group_size is {}, expected -1 or a positive number", object.where(), size));
  return std::optional<int64_t>(size);
}

Result<std::optional<std::pair<int64_t, int64_t>>> ParseBlockStructure(const StrictObject& object) {
  using Block = std::optional<std::pair<int64_t, int64_t>>;
  const Value* value = object.Find("block_structure");
  if (value == nullptr) return Block();
  int64_t rows = 0;
  int64_t columns = 0;
  if (value->is_array()) {
    const Value::Array& sizes = value->as_array();
    if (sizes.size() == 2 && sizes[0].is_int() && sizes[1].is_int()) {
      rows = sizes[0].as_int();
      columns = sizes[1].as_int();
    }
  } else if (value->is_string()) {  // "128x128", written by 0.4 to 0.10
    int consumed = 0;
    const std::string& text = value->as_string();
    // Nine digits are enough, and do not overflow.
    if (std::sscanf(text.c_str(), "%9ld x %9ld%n", &rows, &columns, &consumed) != 2 ||
        static_cast<size_t>(consumed) != text.size()) {
      rows = 0;
    }
  }
  if (rows <= 0 || columns <= 0)
    return InvalidArgument(
        fmt::format("{}.block_structure: expected two positive integers [rows, columns] or the "
                    "string \"128x128\"",
                    object.where()));
  return Block({rows, columns});
}

Status ParseStrategy(const StrictObject& object, QuantizationArgs* args) {
  if (object.Has("strategy")) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string name, object.String("strategy", ""));
    OCTAVO_ASSIGN_OR_RETURN(args->strategy, ParseName(object.Path("strategy"), name, kStrategies));
    return OkStatus();
  }
  const int64_t size = args->group_size.value_or(-2);
  if (size == 0)
    return InvalidArgument(object.where() +
                           ": group_size is 0 and no strategy is given; leave group_size out for "
                           "one scale per tensor, -1 for one per channel");
  args->strategy = size > 0     ? Strategy::kGroup
                   : size == -1 ? Strategy::kChannel
                                : Strategy::kTensor;
  return OkStatus();
}

Status ParseDynamic(const StrictObject& object, QuantizationArgs* args) {
  const Value* value = object.Find("dynamic");
  if (value == nullptr) return OkStatus();
  if (value->is_bool()) {
    args->dynamic = value->as_bool() ? Dynamic::kTrue : Dynamic::kFalse;
    return OkStatus();
  }
  if (value->is_string() && Lower(value->as_string()) == "local") {
    args->dynamic = Dynamic::kLocal;
    return OkStatus();
  }
  return InvalidArgument(object.Path("dynamic") + ": expected true, false or \"local\"");
}

Status ParseActOrder(const StrictObject& object, QuantizationArgs* args) {
  const Value* value = object.Find("actorder");
  if (value == nullptr) return OkStatus();
  if (value->is_bool()) {
    if (!value->as_bool()) return OkStatus();
    args->actorder = ActOrder::kGroup;
    args->actorder_spelling = "group";
    return OkStatus();
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::string name, object.String("actorder", ""));
  OCTAVO_ASSIGN_OR_RETURN(args->actorder, ParseName(object.Path("actorder"), name, kActOrders));
  args->actorder_spelling = Lower(name);
  return OkStatus();
}

// "torch.uint8" for "uint8" and "torch.uint8".
Result<std::optional<std::string>> ParseTorchDType(const StrictObject& object,
                                                   std::string_view key) {
  if (!object.Has(key)) return std::optional<std::string>();
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, object.String(key, ""));
  std::string_view name = text;
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (std::find(kDTypes.begin(), kDTypes.end(), name) == kDTypes.end()) {
    const std::vector<std::string> known(kDTypes.begin(), kDTypes.end());
    return InvalidArgument(fmt::format("{}: \"{}\" is no dtype that is known here{}",
                                       object.Path(key), text, DidYouMean(name, known)));
  }
  return std::optional<std::string>("torch." + std::string(name));
}

// R11.
std::string DefaultZeroPointDType(const QuantizationArgs& args) {
  if (args.type == QuantizationType::kFloat) return "torch.float8_e4m3fn";
  return args.num_bits <= 8 ? "torch.int8" : args.num_bits <= 16 ? "torch.int16" : "torch.int32";
}

bool IsGrouped(Strategy strategy) {
  return strategy == Strategy::kGroup || strategy == Strategy::kTensorGroup;
}

// R4..R9, R11, R17: what the fields of one QuantizationArgs demand of each other.
Status CheckArgs(const QuantizationArgs& args, std::string_view where) {
  const std::string_view strategy = StrategyName(args.strategy);
  const auto refuse = [&](std::string reason) {
    return InvalidArgument(fmt::format("{}: {}", where, reason));
  };
  if (args.num_bits < 1 || args.num_bits > 32)
    return refuse(fmt::format("num_bits is {}, expected 1 to 32", args.num_bits));
  const bool is_float = args.type == QuantizationType::kFloat;
  if (is_float && args.num_bits != 4 && args.num_bits != 8)
    return refuse(fmt::format("a float of {} bits is not supported, only 4 and 8", args.num_bits));
  if (is_float && args.num_bits == 4 && !args.symmetric)
    return refuse("asymmetric 4-bit float is not defined; set symmetric to true");
  if (args.strategy == Strategy::kToken && args.dynamic == Dynamic::kFalse)
    return refuse("strategy token needs dynamic: true (a token has no scale before it is seen)");
  if (IsGrouped(args.strategy) && args.group_size.value_or(0) <= 0)
    return refuse(fmt::format("strategy {} needs a positive group_size", strategy));
  if (!IsGrouped(args.strategy) && args.group_size.value_or(0) > 0)
    return refuse(fmt::format("group_size {} needs strategy group or tensor_group, found {}",
                              *args.group_size, strategy));
  if ((args.strategy == Strategy::kBlock) != args.block_structure.has_value())
    return refuse(
        args.block_structure
            ? fmt::format("block_structure needs strategy block, found {}", strategy)
            : "strategy block needs block_structure, two positive integers [rows, columns]");
  if (args.actorder == ActOrder::kGroup && !IsGrouped(args.strategy))
    return refuse(fmt::format("actorder {} needs strategy group, found {}", args.actorder_spelling,
                              strategy));
  const bool may_be_dynamic = args.strategy == Strategy::kToken ||
                              args.strategy == Strategy::kTensor || IsGrouped(args.strategy);
  if (args.dynamic != Dynamic::kFalse && !may_be_dynamic)
    return refuse(fmt::format("strategy {} cannot be dynamic", strategy));
  if (args.dynamic == Dynamic::kLocal && args.strategy != Strategy::kTensorGroup)
    return refuse(fmt::format("dynamic: local needs strategy tensor_group, found {}", strategy));
  return OkStatus();
}

}  // namespace

std::string_view StrategyName(Strategy strategy) {
  for (const auto& entry : kStrategies) {
    if (entry.value == strategy) return entry.name;
  }
  return "?";
}

std::string QuantizationArgs::ToString() const {
  std::string text =
      fmt::format("{}-bit {}, {}", num_bits, type == QuantizationType::kInt ? "int" : "float",
                  StrategyName(strategy));
  if (group_size.value_or(0) > 0) text += fmt::format(" {}", *group_size);
  if (block_structure)
    text += fmt::format(" {}x{}", block_structure->first, block_structure->second);
  text += symmetric ? ", symmetric" : ", asymmetric";
  text += dynamic == Dynamic::kFalse  ? ", static"
          : dynamic == Dynamic::kTrue ? ", dynamic"
                                      : ", dynamic within a stored global scale";
  if (actorder == ActOrder::kGroup) text += ", columns ordered by group";
  if (scale_dtype) text += ", scales " + *scale_dtype;
  return text;
}

Result<QuantizationArgs> ParseQuantizationArgs(const Value& json, std::string_view where) {
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject object,
      StrictObject::Make(
          json, where,
          {"num_bits", "type", "symmetric", "group_size", "strategy", "block_structure", "dynamic",
           "actorder", "scale_dtype", "zp_dtype", "observer", "observer_kwargs"}));
  QuantizationArgs args;
  OCTAVO_ASSIGN_OR_RETURN(const int64_t num_bits, object.Int("num_bits", 8));
  args.num_bits = static_cast<int>(std::clamp<int64_t>(num_bits, 0, 1000));
  OCTAVO_ASSIGN_OR_RETURN(const std::string type, object.String("type", "int"));
  OCTAVO_ASSIGN_OR_RETURN(args.type, ParseName(object.Path("type"), type, kTypes));
  OCTAVO_ASSIGN_OR_RETURN(args.symmetric, object.Bool("symmetric", true));
  OCTAVO_ASSIGN_OR_RETURN(args.group_size, ParseGroupSize(object));
  OCTAVO_RETURN_IF_ERROR(ParseStrategy(object, &args));
  OCTAVO_ASSIGN_OR_RETURN(args.block_structure, ParseBlockStructure(object));
  OCTAVO_RETURN_IF_ERROR(ParseDynamic(object, &args));
  OCTAVO_RETURN_IF_ERROR(ParseActOrder(object, &args));
  OCTAVO_ASSIGN_OR_RETURN(args.scale_dtype, ParseTorchDType(object, "scale_dtype"));
  OCTAVO_ASSIGN_OR_RETURN(args.zp_dtype, ParseTorchDType(object, "zp_dtype"));
  if (args.symmetric) {
    args.zp_dtype.reset();  // written as null, so it must not tell two equal schemes apart
  } else if (!args.zp_dtype) {
    args.zp_dtype = DefaultZeroPointDType(args);
  }
  if (object.Has("observer")) {
    OCTAVO_ASSIGN_OR_RETURN(args.observer, object.String("observer", ""));
  }
  if (const Value* kwargs = object.Find("observer_kwargs")) {
    if (!kwargs->is_object())
      return InvalidArgument(fmt::format("{} is {}, expected an object",
                                         object.Path("observer_kwargs"), kwargs->type_name()));
    args.observer_kwargs = *kwargs;
  }
  OCTAVO_RETURN_IF_ERROR(CheckArgs(args, where));
  return args;
}

Value ToValue(const QuantizationArgs& args) {
  const auto or_null = [](const std::optional<std::string>& text) {
    return text ? Value(*text) : Value();
  };
  Value json;
  json.Set("actorder", args.actorder == ActOrder::kNone ? Value() : Value(args.actorder_spelling));
  json.Set("block_structure",
           args.block_structure
               ? Value(Value::Array{args.block_structure->first, args.block_structure->second})
               : Value());
  json.Set("dynamic", args.dynamic == Dynamic::kLocal ? Value("local")
                                                      : Value(args.dynamic == Dynamic::kTrue));
  json.Set("group_size", args.group_size ? Value(*args.group_size) : Value());
  json.Set("num_bits", args.num_bits);
  json.Set("observer", or_null(args.observer));
  json.Set("observer_kwargs", args.observer_kwargs);
  json.Set("scale_dtype", or_null(args.scale_dtype));
  json.Set("strategy", StrategyName(args.strategy));
  json.Set("symmetric", args.symmetric);
  json.Set("type", args.type == QuantizationType::kInt ? "int" : "float");
  json.Set("zp_dtype", args.symmetric ? Value() : or_null(args.zp_dtype));
  return json;
}

}  // namespace octavo
