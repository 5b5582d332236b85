#include "model/arch/rope_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/suggest.h"

namespace octavo {

namespace {

// The largest position a float32 angle still tells apart, and far above any real model.
constexpr double kMaxPositions = 1 << 24;

struct ScalingName {
  std::string_view name;
  RopeScaling scaling;
};
constexpr ScalingName kScalings[] = {
    {"default", RopeScaling::kNone},    {"linear", RopeScaling::kLinear},
    {"dynamic", RopeScaling::kDynamic}, {"llama3", RopeScaling::kLlama3},
    {"yarn", RopeScaling::kYarn},       {"longrope", RopeScaling::kLongRope},
    {"su", RopeScaling::kLongRope}};

// A finite number of at least `least`; `fallback` where it is absent, which is an error if that is
// NaN.
Status ReadNumber(const Value& rope, std::string_view key, double least, double fallback,
                  double* number) {
  OCTAVO_ASSIGN_OR_RETURN(*number, rope.GetDouble(key, fallback));
  if (std::isfinite(*number) && *number >= least) return OkStatus();
  const Value* found = rope.Find(key);
  return InvalidArgument(fmt::format(
      "\"{}\" is {}; a number of at least {} is expected", key,
      found == nullptr || found->is_null() ? "missing" : fmt::format("{}", *number), least));
}

Result<RopeScaling> ReadScaling(const Value& rope) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string old_spelling, rope.GetString("type", "default"));
  OCTAVO_ASSIGN_OR_RETURN(const std::string type, rope.GetString("rope_type", old_spelling));
  std::vector<std::string> known;
  for (const ScalingName& scaling : kScalings) {
    if (scaling.name == type) return scaling.scaling;
    known.emplace_back(scaling.name);
  }
  return Unsupported(fmt::format("rope type \"{}\" is not supported{}; there is {}", type,
                                 DidYouMean(type, known), fmt::join(known, ", ")));
}

Status ReadTrainedPositions(const Value& rope, const ModelSpec& spec, int64_t* positions) {
  OCTAVO_ASSIGN_OR_RETURN(*positions,
                          rope.GetInt("original_max_position_embeddings", spec.max_positions));
  if (*positions >= 1 && *positions <= static_cast<int64_t>(kMaxPositions)) return OkStatus();
  return InvalidArgument(fmt::format("\"original_max_position_embeddings\" is {}, expected 1 to {}",
                                     *positions, kMaxPositions));
}

Status ReadLlama3(const Value& rope, RopeSpec* spec) {
  OCTAVO_RETURN_IF_ERROR(
      ReadNumber(rope, "low_freq_factor", 0, std::nan(""), &spec->low_frequency_factor));
  OCTAVO_RETURN_IF_ERROR(
      ReadNumber(rope, "high_freq_factor", 0, std::nan(""), &spec->high_frequency_factor));
  if (spec->high_frequency_factor > spec->low_frequency_factor) return OkStatus();
  return InvalidArgument(
      fmt::format("\"high_freq_factor\" ({}) is not above \"low_freq_factor\" ({})",
                  spec->high_frequency_factor, spec->low_frequency_factor));
}

// The paper's 0.1 m ln(s) + 1.
double YarnMagnitude(double factor, double multiplier) {
  return factor <= 1 ? 1 : 0.1 * multiplier * std::log(factor) + 1;
}

Status ReadYarn(const Value& rope, RopeSpec* spec) {
  OCTAVO_RETURN_IF_ERROR(ReadNumber(rope, "beta_fast", 1e-6, 32, &spec->beta_fast));
  OCTAVO_RETURN_IF_ERROR(ReadNumber(rope, "beta_slow", 1e-6, 1, &spec->beta_slow));
  OCTAVO_ASSIGN_OR_RETURN(spec->round_ramp, rope.GetBool("truncate", true));
  double multiplier = 0;
  double multiplier_all = 0;
  OCTAVO_RETURN_IF_ERROR(ReadNumber(rope, "mscale", 0, 0, &multiplier));
  OCTAVO_RETURN_IF_ERROR(ReadNumber(rope, "mscale_all_dim", 0, 0, &multiplier_all));
  const double usual =
      multiplier > 0 && multiplier_all > 0
          ? YarnMagnitude(spec->factor, multiplier) / YarnMagnitude(spec->factor, multiplier_all)
          : YarnMagnitude(spec->factor, 1);
  OCTAVO_RETURN_IF_ERROR(ReadNumber(rope, "attention_factor", 0, usual, &spec->attention_factor));
  if (spec->theta > 1) return OkStatus();  // its logarithm divides
  return InvalidArgument(fmt::format("\"rope_theta\" is {}; yarn needs more than 1", spec->theta));
}

// "rope_scaling" or "rope_parameters" is one object, for the part of a head that the spec has.
Status CheckObject(const Value& rope, const ModelSpec& spec) {
  if (!rope.is_object())
    return InvalidArgument(fmt::format("{} where an object is expected", rope.type_name()));
  for (const auto& [name, value] : rope.as_object()) {
    if (value.is_object())
      return Unsupported(fmt::format("\"{}\": no such layer type is known here", name));
  }
  OCTAVO_ASSIGN_OR_RETURN(const double part, rope.GetDouble("partial_rotary_factor", 1));
  if (part == 1 || spec.rotary_dim != spec.head_dim) return OkStatus();
  return Unsupported(
      fmt::format("\"partial_rotary_factor\" is {}; 1 is supported for this family", part));
}

// One factor for each pair.
Status ReadFactors(const Value& rope, std::string_view key, int64_t count,
                   std::vector<float>* factors) {
  const Value* list = rope.Find(key);
  if (list == nullptr || !list->is_array() || std::ssize(list->as_array()) != count) {
    return InvalidArgument(
        fmt::format("\"{}\" is expected to be a list of {} numbers, one for each pair that is "
                    "rotated",
                    key, count));
  }
  for (const Value& value : list->as_array()) {
    const double factor = value.is_number() ? value.as_double() : 0;
    if (!(factor > 0) || !std::isfinite(static_cast<float>(factor)))
      return InvalidArgument(fmt::format("\"{}\" holds what is no positive number", key));
    factors->push_back(static_cast<float>(factor));
  }
  return OkStatus();
}

// `config`: where Phi-3's files have the trained positions.
Status ReadLongRope(const Value& rope, const Value& config, ModelSpec* spec) {
  RopeSpec& to = spec->rope;
  OCTAVO_RETURN_IF_ERROR(ReadTrainedPositions(rope, *spec, &to.trained_positions));
  if (config.Find("original_max_position_embeddings") != nullptr)
    OCTAVO_RETURN_IF_ERROR(ReadTrainedPositions(config, *spec, &to.trained_positions));
  to.factor = static_cast<double>(spec->max_positions) / static_cast<double>(to.trained_positions);
  const int64_t pairs = spec->rotary_dim / 2;
  OCTAVO_RETURN_IF_ERROR(ReadFactors(rope, "short_factor", pairs, &to.short_factors));
  OCTAVO_RETURN_IF_ERROR(ReadFactors(rope, "long_factor", pairs, &to.long_factors));
  const double usual = to.factor <= 1 || to.trained_positions == 1
                           ? 1
                           : std::sqrt(1 + std::log(to.factor) /
                                               std::log(static_cast<double>(to.trained_positions)));
  return ReadNumber(rope, "attention_factor", 0, usual, &to.attention_factor);
}

// The members of "rope_scaling" or "rope_parameters", but rope_theta.
Status ReadParameters(const Value& rope, const Value& config, ModelSpec* spec) {
  RopeSpec& to = spec->rope;
  OCTAVO_ASSIGN_OR_RETURN(to.scaling, ReadScaling(rope));
  if (to.scaling == RopeScaling::kNone) return OkStatus();
  if (to.scaling == RopeScaling::kLongRope) return ReadLongRope(rope, config, spec);
  OCTAVO_RETURN_IF_ERROR(ReadTrainedPositions(rope, *spec, &to.trained_positions));
  const double ratio =
      static_cast<double>(spec->max_positions) / static_cast<double>(to.trained_positions);
  const bool may_lack_factor = to.scaling == RopeScaling::kYarn;
  OCTAVO_RETURN_IF_ERROR(
      ReadNumber(rope, "factor", 1, may_lack_factor ? ratio : std::nan(""), &to.factor));
  if (to.scaling == RopeScaling::kLlama3) return ReadLlama3(rope, &to);
  if (to.scaling == RopeScaling::kYarn) OCTAVO_RETURN_IF_ERROR(ReadYarn(rope, &to));
  if (to.scaling == RopeScaling::kDynamic) {
    to.trained_positions = spec->max_positions;  // transformers reads no other
    if (spec->head_dim < 4) return InvalidArgument("dynamic rope needs a head dimension above 2");
  }
  // "max_position_embeddings" counts the stretched positions for llama3 (Meta's files), those
  // trained on for linear and dynamic; yarn's files do either, and name the trained ones.
  const double base = static_cast<double>(to.scaling == RopeScaling::kYarn ? to.trained_positions
                                                                           : spec->max_positions);
  const auto stretched = static_cast<int64_t>(std::min(base * to.factor, kMaxPositions));
  spec->max_positions = std::max(spec->max_positions, stretched);
  return OkStatus();
}

Status CheckTheta(double theta) {
  if (theta > 0 && std::isfinite(theta)) return OkStatus();
  return InvalidArgument(fmt::format("\"rope_theta\" is {}, expected a positive number", theta));
}

// "rope_parameters" by layer type.
bool IsByLayerType(const Value* rope) {
  const Value* full = rope != nullptr && rope->is_object() ? rope->Find("full_attention") : nullptr;
  return full != nullptr && full->is_object();
}

Status ReadOne(const Value& config, const Value& rope, std::string_view key, double theta,
               ModelSpec* spec) {
  OCTAVO_RETURN_IF_ERROR(CheckObject(rope, *spec).Annotate(key));
  OCTAVO_ASSIGN_OR_RETURN(spec->rope.theta, rope.GetDouble("rope_theta", theta));
  OCTAVO_RETURN_IF_ERROR(CheckTheta(spec->rope.theta).Annotate(key));
  return ReadParameters(rope, config, spec).Annotate(key);
}

Status ReadByLayerType(const Value& config, const Value& ropes, double theta, ModelSpec* spec) {
  const Value* sliding = ropes.Find("sliding_attention");
  if (sliding == nullptr || !sliding->is_object())
    return InvalidArgument("\"rope_parameters\" has full_attention but no sliding_attention");
  ModelSpec of_windows = *spec;
  OCTAVO_RETURN_IF_ERROR(ReadOne(config, *sliding, "sliding_attention", theta, &of_windows));
  OCTAVO_RETURN_IF_ERROR(
      ReadOne(config, *ropes.Find("full_attention"), "full_attention", theta, spec));
  spec->window_rope = of_windows.rope;
  return OkStatus();
}

}  // namespace

Status ReadRope(const Value& config, double theta, ModelSpec* spec) {
  if (const Value* ropes = config.Find("rope_parameters"); IsByLayerType(ropes))
    return ReadByLayerType(config, *ropes, theta, spec).Annotate("rope_parameters");
  OCTAVO_ASSIGN_OR_RETURN(spec->rope.theta, config.GetDouble("rope_theta", theta));
  // Where a file has both, transformers 5 takes the scaling from the old spelling.
  const Value* scaling = nullptr;
  const char* scaling_key = nullptr;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Value* rope = config.Find(key);
    if (rope == nullptr || rope->is_null()) continue;
    OCTAVO_RETURN_IF_ERROR(CheckObject(*rope, *spec).Annotate(key));
    OCTAVO_ASSIGN_OR_RETURN(spec->rope.theta, rope->GetDouble("rope_theta", spec->rope.theta));
    scaling = rope;
    scaling_key = key;
  }
  OCTAVO_RETURN_IF_ERROR(CheckTheta(spec->rope.theta));
  if (scaling == nullptr) return OkStatus();
  return ReadParameters(*scaling, config, spec).Annotate(scaling_key);
}

}  // namespace octavo
