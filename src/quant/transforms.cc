#include "quant/transforms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/suggest.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

template <typename Enum>
struct Named {
  std::string_view name;
  Enum value;
};

constexpr Named<TransformType> kTypes[] = {{"hadamard", TransformType::kHadamard},
                                           {"random-hadamard", TransformType::kRandomHadamard},
                                           {"random-matrix", TransformType::kRandomMatrix}};
constexpr Named<TransformLocation> kLocations[] = {
    {"weight_input", TransformLocation::kWeightInput},
    {"weight_output", TransformLocation::kWeightOutput},
    {"input", TransformLocation::kInput},
    {"output", TransformLocation::kOutput},
    {"q_attn", TransformLocation::kQuery},
    {"k_cache", TransformLocation::kKey}};

template <typename Enum, size_t N>
std::string_view NameOf(const Named<Enum> (&names)[N], Enum value) {
  return std::find_if(std::begin(names), std::end(names),
                      [&](const auto& entry) { return entry.value == value; })
      ->name;
}

bool IsPowerOfTwo(int64_t n) {
  return n > 0 && std::has_single_bit(static_cast<uint64_t>(n));
}

template <typename Enum, size_t N>
Result<Enum> FromName(const Named<Enum> (&names)[N], const StrictObject& object,
                      std::string_view key, std::string_view fallback) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, object.String(key, fallback));
  std::vector<std::string> known;
  for (const auto& entry : names) {
    if (entry.name == text) return entry.value;
    known.emplace_back(entry.name);
  }
  return Unsupported(fmt::format("{}: \"{}\" is not supported{}; supported: {}", object.Path(key),
                                 text, DidYouMean(text, known), fmt::join(known, ", ")));
}

Result<std::vector<ModulePattern>> Patterns(const StrictObject& object, std::string_view key) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> texts, object.Strings(key, {}));
  std::vector<ModulePattern> patterns;
  for (const std::string& text : texts) {
    OCTAVO_ASSIGN_OR_RETURN(ModulePattern pattern, ModulePattern::Make(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

// A use of a group, whose settings `group` has.
Result<TransformUse> ParseUse(const Value& value, const std::string& where,
                              const TransformUse& group) {
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject object,
      StrictObject::Make(value, where, {"targets", "location", "inverse", "ignore"}));
  TransformUse use{.group = group.group,
                   .type = group.type,
                   .block = group.block,
                   .randomize = group.randomize,
                   .precision = group.precision};
  OCTAVO_ASSIGN_OR_RETURN(use.location, FromName(kLocations, object, "location", ""));
  OCTAVO_ASSIGN_OR_RETURN(use.inverse, object.Bool("inverse", false));
  OCTAVO_ASSIGN_OR_RETURN(use.targets, Patterns(object, "targets"));
  OCTAVO_ASSIGN_OR_RETURN(use.ignore, Patterns(object, "ignore"));
  return use;
}

Status ParseGroup(const std::string& name, const Value& value, const std::string& where,
                  std::vector<TransformUse>* uses) {
  OCTAVO_ASSIGN_OR_RETURN(
      const StrictObject object,
      StrictObject::Make(value, where,
                         {"type", "apply", "randomize", "requires_grad", "head_dim", "precision"}));
  TransformUse group{.group = name};
  OCTAVO_ASSIGN_OR_RETURN(group.type, ParseTransformType(object, "type"));
  OCTAVO_ASSIGN_OR_RETURN(group.randomize, object.Bool("randomize", false));
  OCTAVO_ASSIGN_OR_RETURN(group.precision, object.String("precision", group.precision));
  if (object.Has("head_dim")) {
    OCTAVO_ASSIGN_OR_RETURN(group.block, object.Int("head_dim", 0));
    if (*group.block <= 0)
      return InvalidArgument(fmt::format("{} is {}, expected a positive number",
                                         object.Path("head_dim"), *group.block));
  }
  const Value* apply = object.Find("apply");
  if (apply == nullptr) return OkStatus();
  if (!apply->is_array())
    return InvalidArgument(
        fmt::format("{} is {}, expected a list", object.Path("apply"), apply->type_name()));
  for (size_t i = 0; i < apply->as_array().size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(
        TransformUse use,
        ParseUse(apply->as_array()[i], fmt::format("{}[{}]", object.Path("apply"), i), group));
    uses->push_back(std::move(use));
  }
  return OkStatus();
}

}  // namespace

Result<TransformType> ParseTransformType(const StrictObject& object, std::string_view key,
                                         std::string_view fallback) {
  return FromName(kTypes, object, key, fallback);
}

std::string TransformUse::Name() const {
  return fmt::format("{} at {}", group, NameOf(kLocations, location));
}

std::string TransformUse::TensorName(std::string_view module) const {
  return fmt::format("{}.{}_{}.weight", module, group, NameOf(kLocations, location));
}

Result<bool> TransformUse::Matches(const ModuleName& module) const {
  for (const ModulePattern& pattern : ignore) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match(module));
    if (kind != MatchKind::kNone) return false;
  }
  for (const ModulePattern& pattern : targets) {
    OCTAVO_ASSIGN_OR_RETURN(const MatchKind kind, pattern.Match(module));
    if (kind != MatchKind::kNone) return true;
  }
  return false;
}

Result<std::vector<TransformUse>> ParseTransforms(const Value& transform_config,
                                                  std::string_view where) {
  std::vector<TransformUse> uses;
  OCTAVO_ASSIGN_OR_RETURN(const StrictObject object,
                          StrictObject::Make(transform_config, where, {"config_groups"}));
  const Value* groups = object.Find("config_groups");
  if (groups == nullptr) return uses;
  const std::string path = object.Path("config_groups");
  if (!groups->is_object())
    return InvalidArgument(fmt::format("{} is {}, expected an object", path, groups->type_name()));
  for (const auto& [name, group] : groups->as_object())
    OCTAVO_RETURN_IF_ERROR(ParseGroup(name, group, path + "." + name, &uses));
  return uses;
}

Result<std::vector<TransformUse>> ParseOnlineTransforms(const Value& transform_config,
                                                        std::string_view where) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<TransformUse> uses, ParseTransforms(transform_config, where));
  std::erase_if(uses, [](const TransformUse& use) { return !use.is_online(); });
  for (const TransformUse& use : uses) {
    if (use.randomize) {
      return Unsupported(fmt::format(
          "{}: {} with randomize (a permutation of its own for each weight) is not supported",
          where, use.Name()));
    }
    if (use.inverse && use.type == TransformType::kRandomMatrix) {
      return Unsupported(fmt::format(
          "{}: the inverse of a random-matrix, {}, is not supported while the model runs", where,
          use.Name()));
    }
  }
  return uses;
}

Value ToValue(const std::vector<TransformUse>& uses) {
  const auto texts = [](const std::vector<ModulePattern>& patterns) {
    Value::Array array;
    for (const ModulePattern& pattern : patterns) array.emplace_back(pattern.text());
    return array;
  };
  Value groups = Value::MakeObject();
  for (const TransformUse& use : uses) {
    if (groups.Find(use.group) == nullptr) {
      Value group;
      group.Set("type", NameOf(kTypes, use.type));
      group.Set("apply", Value::MakeArray());
      group.Set("randomize", use.randomize);
      group.Set("requires_grad", false);
      group.Set("head_dim", use.block ? Value(*use.block) : Value());
      group.Set("precision", use.precision);
      groups.Set(use.group, std::move(group));
    }
    Value apply;
    apply.Set("targets", texts(use.targets));
    apply.Set("location", NameOf(kLocations, use.location));
    apply.Set("inverse", use.inverse);
    apply.Set("ignore", texts(use.ignore));
    groups.Find(use.group)->Find("apply")->as_array().push_back(std::move(apply));
  }
  Value config;
  config.Set("config_groups", std::move(groups));
  return config;
}

TransformMaker::TransformMaker(const Checkpoint& checkpoint,
                               const std::vector<TransformUse>& transforms) {
  const std::vector<std::string> names = checkpoint.Names();
  for (const std::string& name : names) {
    for (const TransformUse& use : transforms) {
      const std::string end = use.TensorName("");
      if (!name.ends_with(end)) continue;
      stored_.push_back({name, use.group, use.location, checkpoint.Find(name).value()});
      break;
    }
  }
}

std::vector<std::string> TransformMaker::TensorNames() const {
  std::vector<std::string> names;
  for (const Stored& stored : stored_) names.push_back(stored.name);
  return names;
}

Result<std::shared_ptr<const RowTransform>> TransformMaker::Make(const TransformUse& use,
                                                                 std::string_view module,
                                                                 int64_t width) {
  const int64_t n = use.block.value_or(width);
  if (width % n != 0) {
    return InvalidArgument(
        fmt::format("{} of {}: blocks of {} (head_dim) do not divide a width of {}", use.Name(),
                    module, n, width));
  }
  OCTAVO_ASSIGN_OR_RETURN(const Stored* stored, FindStored(use, module, n));
  auto& made = made_[{stored == nullptr ? "" : stored->name, n, use.inverse}];
  if (made != nullptr) return made;
  if (stored != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(made, FromStored(use, *stored, n));
    return made;
  }
  if (use.type != TransformType::kHadamard || !IsPowerOfTwo(n)) {
    return NotFound(
        fmt::format("{} is missing, and so is every other matrix [{}, {}] of {}; only hadamard of "
                    "a power of two "
                    "can be made without",
                    use.TensorName(module), n, n, use.group));
  }
  made = std::make_shared<const RowTransform>(n);
  return made;
}

// Its own, which must have the right shape; else one of the same size in the group, best at the
// same location.
Result<const TransformMaker::Stored*> TransformMaker::FindStored(const TransformUse& use,
                                                                 std::string_view module,
                                                                 int64_t n) const {
  const std::string own = use.TensorName(module);
  const Stored* best = nullptr;
  for (const Stored& stored : stored_) {
    if (stored.group != use.group) continue;
    const bool fits = stored.view.shape == Shape{n, n};
    if (stored.name == own) {
      if (fits) return &stored;
      return InvalidArgument(fmt::format("{}: shape {}, expected [{}, {}]", own,
                                         ShapeString(stored.view.shape), n, n));
    }
    if (!fits) continue;
    const bool nearer = best != nullptr && best->location != use.location;
    if (best == nullptr || (nearer && stored.location == use.location)) best = &stored;
  }
  return best;
}

Result<std::shared_ptr<const RowTransform>> TransformMaker::FromStored(const TransformUse& use,
                                                                       const Stored& stored,
                                                                       int64_t n) const {
  auto matrix = ToFloatTensor(stored.view);
  if (!matrix.ok()) return matrix.status().Annotate(stored.name);
  const bool is_random_matrix = use.type == TransformType::kRandomMatrix;
  for (const float element : matrix->data<float>()) {
    if (is_random_matrix ? std::isfinite(element) : std::fabs(element) == 1) continue;
    return InvalidArgument(
        fmt::format("{} holds {}, expected {}", stored.name, element,
                    is_random_matrix ? "finite numbers" : "1 and -1 only (a Hadamard matrix)"));
  }
  const double scale = is_random_matrix ? 1 : 1 / std::sqrt(static_cast<double>(n));
  return std::make_shared<const RowTransform>(*matrix, static_cast<float>(scale), use.inverse);
}

}  // namespace octavo
