#include "model/arch/config_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "model/arch/rope_reader.h"

namespace octavo {

namespace {

// Far above any real model; keeps products of sizes inside int64 and a hostile config from asking
// for the moon.
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 4096;

Status ReadSize(const Value& config, std::string_view key, int64_t fallback, int64_t* size,
                int64_t largest = kMaxSize) {
  OCTAVO_ASSIGN_OR_RETURN(*size, config.GetInt(key, fallback));
  if (*size >= 1 && *size <= largest) return OkStatus();
  return InvalidArgument(
      fmt::format("\"{}\" is {}; a size from 1 to {} is expected", key, *size, largest));
}

// One entry of "layer_types".
Result<bool> IsSliding(const Value& type) {
  const std::string name = type.is_string() ? type.as_string() : std::string(type.type_name());
  if (name == "sliding_attention") return true;
  if (name == "full_attention") return false;
  return Unsupported(fmt::format(
      "\"layer_types\" names \"{}\"; sliding_attention and full_attention are supported", name));
}

Result<DType> ReadDType(const Value& config) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string old_spelling,
                          config.GetString("torch_dtype", "float32"));
  OCTAVO_ASSIGN_OR_RETURN(const std::string name, config.GetString("dtype", old_spelling));
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16") return DType::kF16;
  if (name == "float32") return DType::kF32;
  return Unsupported("\"torch_dtype\" is \"" + name +
                     "\"; bfloat16, float16 and float32 are supported");
}

Status ReadRotaryDim(const Value& config, const ConfigDefaults& defaults, ModelSpec* spec) {
  spec->rotary_dim = spec->head_dim;
  if (!defaults.partial_rotary_factor) return OkStatus();
  constexpr std::string_view kKey = "partial_rotary_factor";
  OCTAVO_ASSIGN_OR_RETURN(double factor, config.GetDouble(kKey, *defaults.partial_rotary_factor));
  const Value* parameters = config.Find("rope_parameters");
  if (parameters != nullptr && parameters->is_object()) {
    OCTAVO_ASSIGN_OR_RETURN(factor, parameters->GetDouble(kKey, factor));
  }
  if (factor > 0 && factor <= 1) {
    spec->rotary_dim = static_cast<int64_t>(static_cast<double>(spec->head_dim) * factor);
    if (spec->rotary_dim >= 2 && spec->rotary_dim % 2 == 0) return OkStatus();
  }
  return InvalidArgument(
      fmt::format("\"{}\" is {}: of a head of {} it has to leave an even number to rotate", kKey,
                  factor, spec->head_dim));
}

Result<Activation> ReadActivation(const Value& config, const ConfigDefaults& defaults) {
  constexpr std::pair<std::string_view, Activation> kActivations[] = {
      {"silu", Activation::kSilu},
      {"gelu", Activation::kGelu},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_new", Activation::kGeluTanh},
      {"relu", Activation::kRelu}};
  OCTAVO_ASSIGN_OR_RETURN(const std::string wanted,
                          config.GetString(defaults.activation_key, defaults.activation));
  std::vector<std::string_view> known;
  for (const auto& [name, activation] : kActivations) {
    if (name == wanted) return activation;
    known.push_back(name);
  }
  return Unsupported(fmt::format("\"{}\" is \"{}\"; there is {}", defaults.activation_key, wanted,
                                 fmt::join(known, ", ")));
}

}  // namespace

Result<ModelSpec> ReadCommonConfig(const Value& config, const ConfigDefaults& defaults) {
  ModelSpec spec;
  for (const auto& [key, size] : {std::pair{"vocab_size", &spec.vocab_size},
                                  {"hidden_size", &spec.hidden_size},
                                  {"intermediate_size", &spec.intermediate_size},
                                  {"num_attention_heads", &spec.num_heads}}) {
    OCTAVO_RETURN_IF_ERROR(ReadSize(config, key, 0, size));
  }
  OCTAVO_RETURN_IF_ERROR(ReadSize(config, "num_hidden_layers", 0, &spec.num_layers, kMaxLayers));
  OCTAVO_RETURN_IF_ERROR(
      ReadSize(config, "num_key_value_heads", spec.num_heads, &spec.num_kv_heads));
  OCTAVO_RETURN_IF_ERROR(ReadSize(config, "head_dim",
                                  defaults.head_dim.value_or(spec.hidden_size / spec.num_heads),
                                  &spec.head_dim));
  OCTAVO_RETURN_IF_ERROR(ReadSize(config, "max_position_embeddings",
                                  defaults.max_position_embeddings, &spec.max_positions));
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return InvalidArgument(
        fmt::format("\"num_attention_heads\" ({}) is no multiple of \"num_key_value_heads\" ({})",
                    spec.num_heads, spec.num_kv_heads));
  }
  if (spec.head_dim % 2 != 0) {
    return InvalidArgument(
        fmt::format("the head dimension {} is odd; rotary embedding needs pairs", spec.head_dim));
  }
  OCTAVO_ASSIGN_OR_RETURN(const double epsilon,
                          config.GetDouble("rms_norm_eps", defaults.norm_epsilon));
  spec.norm_epsilon = static_cast<float>(epsilon);
  OCTAVO_RETURN_IF_ERROR(ReadRotaryDim(config, defaults, &spec));
  OCTAVO_RETURN_IF_ERROR(ReadRope(config, defaults.rope_theta, &spec));
  OCTAVO_ASSIGN_OR_RETURN(spec.tie_word_embeddings,
                          config.GetBool("tie_word_embeddings", defaults.tie_word_embeddings));
  OCTAVO_ASSIGN_OR_RETURN(spec.dtype, ReadDType(config));
  OCTAVO_ASSIGN_OR_RETURN(spec.activation, ReadActivation(config, defaults));
  return spec;
}

Result<float> ReadFactor(const Value& config, std::string_view key, double fallback) {
  OCTAVO_ASSIGN_OR_RETURN(const double value, config.GetDouble(key, fallback));
  const auto factor = static_cast<float>(value);
  if (std::isfinite(factor) && factor != 0) return factor;
  return InvalidArgument(
      fmt::format("\"{}\" is {}; a number other than 0 is expected", key, value));
}

Result<float> ReadSoftCap(const Value& config, std::string_view key, double fallback) {
  const Value* found = config.Find(key);
  const bool given = found != nullptr && !found->is_null();
  if (!given && (found != nullptr || fallback == 0)) return 0.0F;
  OCTAVO_ASSIGN_OR_RETURN(const float cap, ReadFactor(config, key, fallback));
  if (cap > 0) return cap;
  return InvalidArgument(
      fmt::format("\"{}\" is {}; a positive number or null is expected", key, cap));
}

Status ReadBiases(const Value& config, ModelSpec* spec) {
  OCTAVO_ASSIGN_OR_RETURN(spec->qkv_bias, config.GetBool("attention_bias", false));
  spec->attention_output_bias = spec->qkv_bias;
  OCTAVO_ASSIGN_OR_RETURN(spec->mlp_bias, config.GetBool("mlp_bias", false));
  return OkStatus();
}

Result<std::optional<int64_t>> ReadSlidingWindow(const Value& config,
                                                 std::optional<int64_t> fallback) {
  const Value* given = config.Find("sliding_window");
  if (given == nullptr) return fallback;
  if (given->is_null()) return std::optional<int64_t>();
  OCTAVO_ASSIGN_OR_RETURN(const int64_t window, config.GetInt("sliding_window", 0));
  return std::optional(window);
}

Status ReadWindows(const Value& config, std::optional<int64_t> window,
                   const SlidesByDefault& slides, ModelSpec* spec) {
  if (window && *window < 1) {
    return InvalidArgument(
        fmt::format("\"sliding_window\" is {}, expected a number of tokens or null", *window));
  }
  const Value* types = config.Find("layer_types");
  const bool listed = types != nullptr && !types->is_null();
  if (listed && (!types->is_array() || std::ssize(types->as_array()) != spec->num_layers)) {
    return InvalidArgument(
        fmt::format("\"layer_types\" is expected to be a list of {} names, one for each of "
                    "\"num_hidden_layers\"",
                    spec->num_layers));
  }
  std::vector<int64_t> windows(static_cast<size_t>(spec->num_layers), 0);
  for (int64_t i = 0; i < spec->num_layers; ++i) {
    bool sliding = window && slides(i);
    if (listed) {
      OCTAVO_ASSIGN_OR_RETURN(sliding, IsSliding(types->as_array()[static_cast<size_t>(i)]));
    }
    if (sliding && !window) {
      return InvalidArgument(
          "\"layer_types\" names sliding_attention, but \"sliding_window\" is not given or not "
          "used");
    }
    // No sequence is longer than kMaxSize.
    if (sliding) windows[static_cast<size_t>(i)] = std::min(*window, kMaxSize);
  }
  const bool any = std::any_of(windows.begin(), windows.end(), [](int64_t w) { return w > 0; });
  if (any) spec->windows = std::move(windows);
  return OkStatus();
}

Status ReadQwenWindows(const Value& config, ModelSpec* spec) {
  OCTAVO_ASSIGN_OR_RETURN(const bool used, config.GetBool("use_sliding_window", false));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t window, config.GetInt("sliding_window", 4096));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t first_sliding, config.GetInt("max_window_layers", 28));
  return ReadWindows(
      config, used ? std::optional(window) : std::nullopt,
      [first_sliding](int64_t layer) { return layer >= first_sliding; }, spec);
}

}  // namespace octavo
