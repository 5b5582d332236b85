#include "model/arch/config_reader.h"

#include <fmt/format.h>

#include <cmath>

namespace octavo {

namespace {

// Far above any real model; keeps products of sizes inside int64 and a hostile config from asking
// for the moon.
constexpr int64_t kMaxSize = int64_t{1} << 24;

Status ReadSize(const Value& config, std::string_view key, int64_t fallback, int64_t* size) {
  OCTAVO_ASSIGN_OR_RETURN(*size, config.GetInt(key, fallback));
  if (*size >= 1 && *size <= kMaxSize) return OkStatus();
  return InvalidArgument(
      fmt::format("\"{}\" is {}; a size from 1 to {} is expected", key, *size, kMaxSize));
}

// rope_theta at the top (transformers 4) or in rope_parameters (5); a scaling of any kind but
// "default" is refused.
Status ReadRope(const Value& config, ModelSpec* spec) {
  OCTAVO_ASSIGN_OR_RETURN(spec->rope_theta, config.GetDouble("rope_theta", 10000.0));
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Value* rope = config.Find(key);
    if (rope == nullptr || rope->is_null()) continue;
    if (!rope->is_object())
      return InvalidArgument(
          fmt::format("\"{}\" is {}, expected an object", key, rope->type_name()));
    OCTAVO_ASSIGN_OR_RETURN(const std::string old_spelling, rope->GetString("type", "default"));
    OCTAVO_ASSIGN_OR_RETURN(const std::string type, rope->GetString("rope_type", old_spelling));
    if (type != "default")
      return Unsupported(fmt::format("\"{}\": rope type \"{}\" is not supported yet", key, type));
    OCTAVO_ASSIGN_OR_RETURN(spec->rope_theta, rope->GetDouble("rope_theta", spec->rope_theta));
  }
  if (!(spec->rope_theta > 0) || !std::isfinite(spec->rope_theta)) {
    return InvalidArgument(
        fmt::format("\"rope_theta\" is {}, expected a positive number", spec->rope_theta));
  }
  return OkStatus();
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

}  // namespace

Result<ModelSpec> ReadCommonConfig(const Value& config) {
  ModelSpec spec;
  for (const auto& [key, size] : {std::pair{"vocab_size", &spec.vocab_size},
                                  {"hidden_size", &spec.hidden_size},
                                  {"intermediate_size", &spec.intermediate_size},
                                  {"num_hidden_layers", &spec.num_layers},
                                  {"num_attention_heads", &spec.num_heads}}) {
    OCTAVO_RETURN_IF_ERROR(ReadSize(config, key, 0, size));
  }
  OCTAVO_RETURN_IF_ERROR(
      ReadSize(config, "num_key_value_heads", spec.num_heads, &spec.num_kv_heads));
  OCTAVO_RETURN_IF_ERROR(
      ReadSize(config, "head_dim", spec.hidden_size / spec.num_heads, &spec.head_dim));
  OCTAVO_RETURN_IF_ERROR(ReadSize(config, "max_position_embeddings", 2048, &spec.max_positions));
  if (spec.num_heads % spec.num_kv_heads != 0) {
    return InvalidArgument(
        fmt::format("\"num_attention_heads\" ({}) is no multiple of \"num_key_value_heads\" ({})",
                    spec.num_heads, spec.num_kv_heads));
  }
  if (spec.head_dim % 2 != 0) {
    return InvalidArgument(
        fmt::format("the head dimension {} is odd; rotary embedding needs pairs", spec.head_dim));
  }
  OCTAVO_ASSIGN_OR_RETURN(const double epsilon, config.GetDouble("rms_norm_eps", 1e-6));
  spec.norm_epsilon = static_cast<float>(epsilon);
  OCTAVO_RETURN_IF_ERROR(ReadRope(config, &spec));
  OCTAVO_ASSIGN_OR_RETURN(spec.tie_word_embeddings, config.GetBool("tie_word_embeddings", false));
  OCTAVO_ASSIGN_OR_RETURN(spec.dtype, ReadDType(config));
  OCTAVO_ASSIGN_OR_RETURN(const std::string activation, config.GetString("hidden_act", "silu"));
  if (activation != "silu")
    return Unsupported("\"hidden_act\" is \"" + activation + "\"; silu is supported");
  return spec;
}

}  // namespace octavo
