#include "convert/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "convert/gguf_families.h"
#include "convert/gguf_metadata.h"
#include "convert/gguf_rope.h"

namespace octavo {

namespace {

struct Sizes {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab = 0;
};

// Which of the optional tensors a layer has.
struct Parts {
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
};

// One tensor of a layer; its shape and rotary heads as functions of the sizes.
struct LayerTensor {
  std::string_view source;
  std::string_view name;
  Shape (*shape)(const Sizes&);
  int64_t Sizes::*rotary_heads = nullptr;
  bool Parts::*part = nullptr;  // null: every layer has it
};

Shape Hidden(const Sizes& s) {
  return {s.hidden};
}
Shape Intermediate(const Sizes& s) {
  return {s.intermediate};
}
Shape QueryRows(const Sizes& s) {
  return {s.heads * s.head_dim};
}
Shape KeyValueRows(const Sizes& s) {
  return {s.kv_heads * s.head_dim};
}
Shape Head(const Sizes& s) {
  return {s.head_dim};
}
Shape Query(const Sizes& s) {
  return {s.heads * s.head_dim, s.hidden};
}
Shape KeyValue(const Sizes& s) {
  return {s.kv_heads * s.head_dim, s.hidden};
}
Shape Output(const Sizes& s) {
  return {s.hidden, s.heads * s.head_dim};
}
Shape Up(const Sizes& s) {
  return {s.intermediate, s.hidden};
}
Shape Down(const Sizes& s) {
  return {s.hidden, s.intermediate};
}

constexpr std::array kLayerTensors = {
    LayerTensor{"attn_norm.weight", "input_layernorm.weight", Hidden},
    LayerTensor{"attn_q.weight", "self_attn.q_proj.weight", Query, &Sizes::heads},
    LayerTensor{"attn_k.weight", "self_attn.k_proj.weight", KeyValue, &Sizes::kv_heads},
    LayerTensor{"attn_v.weight", "self_attn.v_proj.weight", KeyValue},
    LayerTensor{"attn_output.weight", "self_attn.o_proj.weight", Output},
    LayerTensor{"attn_q.bias", "self_attn.q_proj.bias", QueryRows, &Sizes::heads, &Parts::qkv_bias},
    LayerTensor{"attn_k.bias", "self_attn.k_proj.bias", KeyValueRows, &Sizes::kv_heads,
                &Parts::qkv_bias},
    LayerTensor{"attn_v.bias", "self_attn.v_proj.bias", KeyValueRows, nullptr, &Parts::qkv_bias},
    LayerTensor{"attn_output.bias", "self_attn.o_proj.bias", Hidden, nullptr, &Parts::output_bias},
    LayerTensor{"attn_q_norm.weight", "self_attn.q_norm.weight", Head, nullptr, &Parts::qk_norm},
    LayerTensor{"attn_k_norm.weight", "self_attn.k_norm.weight", Head, nullptr, &Parts::qk_norm},
    LayerTensor{"ffn_norm.weight", "post_attention_layernorm.weight", Hidden},
    LayerTensor{"ffn_gate.weight", "mlp.gate_proj.weight", Up},
    LayerTensor{"ffn_up.weight", "mlp.up_proj.weight", Up},
    LayerTensor{"ffn_down.weight", "mlp.down_proj.weight", Down},
    LayerTensor{"ffn_gate.bias", "mlp.gate_proj.bias", Intermediate, nullptr, &Parts::mlp_bias},
    LayerTensor{"ffn_up.bias", "mlp.up_proj.bias", Intermediate, nullptr, &Parts::mlp_bias},
    LayerTensor{"ffn_down.bias", "mlp.down_proj.bias", Hidden, nullptr, &Parts::mlp_bias},
};

// Tensors by name; what Take has not taken is unknown.
class TensorTable {
 public:
  explicit TensorTable(const GgufFile& file) {
    for (const GgufTensor& tensor : file.tensors()) tensors_.emplace(tensor.name, &tensor);
  }

  const GgufTensor* Find(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second;
  }

  Result<const GgufTensor*> Take(const std::string& name, const Shape& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return NotFound("tensor " + name + " is missing");
    const GgufTensor* tensor = found->second;
    if (tensor->shape != shape) {
      return CorruptFile(fmt::format("tensor {}: shape {}, expected {}", name,
                                     ShapeString(tensor->shape), ShapeString(shape)));
    }
    tensors_.erase(found);
    return tensor;
  }

  // Nothing is dropped in silence: a tensor without a place changes what the model computes.
  Status CheckAllTaken(const GgufFile& file, const GgufFamily& family) const {
    for (const GgufTensor& tensor : file.tensors()) {
      if (!tensors_.contains(tensor.name)) continue;
      return Unsupported(
          fmt::format("tensor {} has no place in a {} model", tensor.name, family.model_type));
    }
    return OkStatus();
  }

 private:
  std::unordered_map<std::string, const GgufTensor*> tensors_;
};

// A file being read, and what is known of it so far.
struct Source {
  const Value& metadata;
  const GgufFamily& family;
  TensorTable table;
  Sizes sizes = {};
  Parts parts = {};

  std::string Key(std::string_view name) const {
    return std::string(family.architecture).append(".").append(name);
  }
};

Status ReadSizes(Source& source) {
  const Value& metadata = source.metadata;
  Sizes& s = source.sizes;
  const auto require = [&](std::string_view name) {
    return RequireSize(metadata, source.Key(name));
  };
  const auto size_or = [&](std::string_view name, int64_t fallback) {
    return SizeOr(metadata, source.Key(name), fallback);
  };
  OCTAVO_ASSIGN_OR_RETURN(s.layers, require("block_count"));
  OCTAVO_ASSIGN_OR_RETURN(s.hidden, require("embedding_length"));
  OCTAVO_ASSIGN_OR_RETURN(s.intermediate, require("feed_forward_length"));
  OCTAVO_ASSIGN_OR_RETURN(s.heads, require("attention.head_count"));
  OCTAVO_ASSIGN_OR_RETURN(s.kv_heads, size_or("attention.head_count_kv", s.heads));
  OCTAVO_ASSIGN_OR_RETURN(s.head_dim, size_or("attention.key_length", s.hidden / s.heads));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t rotary, size_or("rope.dimension_count", s.head_dim));
  if (rotary != s.head_dim || s.head_dim % 2 != 0 || s.head_dim == 0) {
    return Unsupported(fmt::format("{} is {}, expected the head size {}, an even number",
                                   source.Key("rope.dimension_count"), rotary, s.head_dim));
  }
  if (s.heads % s.kv_heads != 0) {
    return CorruptFile(
        fmt::format("{} heads cannot share {} key-value heads", s.heads, s.kv_heads));
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t value_dim, size_or("attention.value_length", s.head_dim));
  if (value_dim != s.head_dim) {
    return Unsupported(fmt::format("{} is {}, expected {}", source.Key("attention.value_length"),
                                   value_dim, s.head_dim));
  }
  // Rows of the embedding: older files do not state the size of the vocabulary.
  const GgufTensor* embedding = source.table.Find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.empty()) {
    return NotFound(
        "tensor token_embd.weight is missing: a file without weights cannot be imported");
  }
  s.vocab = embedding->shape[0];
  return OkStatus();
}

// By the first layer; that the others have the same is checked when tensors are taken.
Parts FindParts(const Source& source) {
  const GgufFamily& family = source.family;
  const bool mlp = family.bias == GgufBias::kAttentionAndMlp;
  const auto has = [&](const char* name) { return source.table.Find(name) != nullptr; };
  const bool attention_bias =
      (mlp || family.bias == GgufBias::kAttention) && has("blk.0.attn_q.bias");
  return {.qkv_bias = attention_bias || family.bias == GgufBias::kQkv,
          .output_bias = attention_bias,
          .mlp_bias = mlp && has("blk.0.ffn_up.bias"),
          .qk_norm = family.qk_norm};
}

Result<std::vector<ImportedTensor>> TakeTensors(Source& source) {
  const Sizes& s = source.sizes;
  std::vector<ImportedTensor> tensors;
  const auto take = [&](const std::string& from, std::string name, const Shape& shape,
                        int64_t rotary_heads) -> Status {
    OCTAVO_ASSIGN_OR_RETURN(const GgufTensor* tensor, source.table.Take(from, shape));
    tensors.push_back({std::move(name), tensor, rotary_heads});
    return OkStatus();
  };
  OCTAVO_RETURN_IF_ERROR(
      take("token_embd.weight", "model.embed_tokens.weight", {s.vocab, s.hidden}, 0));
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    for (const LayerTensor& tensor : kLayerTensors) {
      if (tensor.part != nullptr && !(source.parts.*tensor.part)) continue;
      const bool reordered = tensor.rotary_heads != nullptr && source.family.paired_rotary;
      OCTAVO_RETURN_IF_ERROR(take(fmt::format("blk.{}.{}", layer, tensor.source),
                                  fmt::format("model.layers.{}.{}", layer, tensor.name),
                                  tensor.shape(s), reordered ? s.*tensor.rotary_heads : 0));
    }
  }
  OCTAVO_RETURN_IF_ERROR(take("output_norm.weight", "model.norm.weight", {s.hidden}, 0));
  if (source.table.Find("output.weight") != nullptr) {
    OCTAVO_RETURN_IF_ERROR(take("output.weight", "lm_head.weight", {s.vocab, s.hidden}, 0));
  }
  return tensors;
}

Result<Value> TakeRopeScaling(Source& source, double theta) {
  const std::string name = "rope_freqs.weight";
  const GgufTensor* freqs = nullptr;
  if (source.table.Find(name) != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(freqs, source.table.Take(name, {source.sizes.head_dim / 2}));
  }
  return ReadRopeScaling(source.metadata, source.family.architecture,
                         {.theta = theta, .head_dim = source.sizes.head_dim}, freqs);
}

// F32 or F16 where every matrix is that; norms and biases are F32 in nearly every file.
DType PreferredDType(const std::vector<ImportedTensor>& tensors) {
  const auto all_are = [&](std::string_view type) {
    return std::all_of(tensors.begin(), tensors.end(), [&](const ImportedTensor& tensor) {
      return tensor.source->shape.size() < 2 || tensor.source->type->name == type;
    });
  };
  return all_are("F32") ? DType::kF32 : all_are("F16") ? DType::kF16 : DType::kBF16;
}

std::string_view ConfigName(DType dtype) {
  return dtype == DType::kF32 ? "float32" : dtype == DType::kF16 ? "float16" : "bfloat16";
}

Result<Value> MakeConfig(Source& source, DType dtype, bool tied) {
  const Value& metadata = source.metadata;
  const Sizes& s = source.sizes;
  OCTAVO_ASSIGN_OR_RETURN(const int64_t context,
                          RequireSize(metadata, source.Key("context_length")));
  OCTAVO_ASSIGN_OR_RETURN(const double epsilon,
                          metadata.GetDouble(source.Key("attention.layer_norm_rms_epsilon"), 1e-5));
  OCTAVO_ASSIGN_OR_RETURN(const double theta,
                          metadata.GetDouble(source.Key("rope.freq_base"), 10000.0));
  OCTAVO_ASSIGN_OR_RETURN(Value rope_scaling, TakeRopeScaling(source, theta));
  Value config = Value::Object{
      {"architectures", Value::Array{source.family.class_name}},
      {"attention_dropout", 0.0},
      {"hidden_act", "silu"},
      {"hidden_size", s.hidden},
      // Not in the file, and of use only to training: the usual 1 / sqrt(hidden size).
      {"initializer_range", 1.0 / std::sqrt(static_cast<double>(s.hidden))},
      {"intermediate_size", s.intermediate},
      {"max_position_embeddings", context},
      {"model_type", source.family.model_type},
      {"num_attention_heads", s.heads},
      {"num_hidden_layers", s.layers},
      {"num_key_value_heads", s.kv_heads},
      {"rms_norm_eps", DecimalOfFloat(epsilon)},
      {"rope_scaling", std::move(rope_scaling)},
      {"rope_theta", DecimalOfFloat(theta)},
      {"tie_word_embeddings", tied},
      {"torch_dtype", ConfigName(dtype)},
      {"use_cache", true},
      {"vocab_size", s.vocab},
  };
  const GgufBias bias = source.family.bias;
  if (bias == GgufBias::kAttention || bias == GgufBias::kAttentionAndMlp) {
    config.Set("attention_bias", source.parts.output_bias);
  }
  if (bias == GgufBias::kAttentionAndMlp) config.Set("mlp_bias", source.parts.mlp_bias);
  if (source.family.states_head_dim || s.head_dim * s.heads != s.hidden) {
    config.Set("head_dim", s.head_dim);
  }
  OCTAVO_RETURN_IF_ERROR(SetTokenIds(metadata, s.vocab, config));
  if (source.family.windowed) {
    OCTAVO_ASSIGN_OR_RETURN(const int64_t window,
                            RequireSize(metadata, source.Key("attention.sliding_window")));
    config.Set("sliding_window", window);
  }
  if (source.family.add_config != nullptr) source.family.add_config(config);
  return config;
}

// Refused before tensors are looked for, which they would not find.
Status CheckVariant(const Source& source) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t experts,
                          source.metadata.GetInt(source.Key("expert_count"), 0));
  if (experts != 0) {
    return Unsupported(fmt::format("{} with {} experts", source.family.architecture, experts));
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t parts, source.metadata.GetInt("split.count", 1));
  if (parts > 1) {
    return Unsupported(
        fmt::format("one of {} parts of a split model: join them with "
                    "llama-gguf-split --merge first",
                    parts));
  }
  return OkStatus();
}

}  // namespace

Result<ImportedModel> PlanModel(const GgufFile& file, std::optional<DType> dtype) {
  const Value& metadata = file.metadata();
  OCTAVO_ASSIGN_OR_RETURN(const GgufFamily* family, FindGgufFamily(metadata));
  Source source{.metadata = metadata, .family = *family, .table = TensorTable(file)};
  OCTAVO_RETURN_IF_ERROR(CheckVariant(source));
  OCTAVO_RETURN_IF_ERROR(ReadSizes(source));
  source.parts = FindParts(source);
  ImportedModel model;
  OCTAVO_ASSIGN_OR_RETURN(model.tensors, TakeTensors(source));
  model.dtype = dtype.value_or(PreferredDType(model.tensors));
  const bool tied = model.tensors.back().name != "lm_head.weight";
  OCTAVO_ASSIGN_OR_RETURN(model.config, MakeConfig(source, model.dtype, tied));
  OCTAVO_RETURN_IF_ERROR(source.table.CheckAllTaken(file, *family));
  OCTAVO_ASSIGN_OR_RETURN(model.generation_config,
                          MakeGenerationConfig(metadata, source.sizes.vocab));
  return model;
}

int64_t SourceRow(int64_t row, int64_t rows, int64_t rotary_heads) {
  if (rotary_heads == 0) return row;
  const int64_t head_dim = rows / rotary_heads;
  const int64_t head = row / head_dim;
  const int64_t half = row % head_dim / (head_dim / 2);
  const int64_t i = row % (head_dim / 2);
  return head * head_dim + 2 * i + half;
}

}  // namespace octavo
