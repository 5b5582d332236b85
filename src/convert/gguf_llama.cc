#include "convert/gguf_llama.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "convert/gguf_metadata.h"

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

// One tensor of a layer; its shape and rotary heads as functions of the sizes.
struct LayerTensor {
  std::string_view source;
  std::string_view name;
  Shape (*shape)(const Sizes&);
  int64_t (*rotary_heads)(const Sizes&) = nullptr;
};

Shape Vector(const Sizes& s) {
  return {s.hidden};
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
int64_t QueryHeads(const Sizes& s) {
  return s.heads;
}
int64_t KeyHeads(const Sizes& s) {
  return s.kv_heads;
}

constexpr std::array kLayerTensors = {
    LayerTensor{"attn_norm", "input_layernorm", Vector},
    LayerTensor{"attn_q", "self_attn.q_proj", Query, QueryHeads},
    LayerTensor{"attn_k", "self_attn.k_proj", KeyValue, KeyHeads},
    LayerTensor{"attn_v", "self_attn.v_proj", KeyValue},
    LayerTensor{"attn_output", "self_attn.o_proj", Output},
    LayerTensor{"ffn_norm", "post_attention_layernorm", Vector},
    LayerTensor{"ffn_gate", "mlp.gate_proj", Up},
    LayerTensor{"ffn_up", "mlp.up_proj", Up},
    LayerTensor{"ffn_down", "mlp.down_proj", Down},
};

// Tensors by name; what Take has not taken is unknown.
class TensorTable {
 public:
  explicit TensorTable(const GgufFile& file) {
    for (const GgufTensor& tensor : file.tensors()) tensors_.emplace(tensor.name, &tensor);
  }

  bool Contains(const std::string& name) const { return tensors_.contains(name); }

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
  Status CheckAllTaken(const GgufFile& file) const {
    for (const GgufTensor& tensor : file.tensors()) {
      if (!tensors_.contains(tensor.name)) continue;
      return Unsupported("tensor " + tensor.name + " has no place in a llama model");
    }
    return OkStatus();
  }

 private:
  std::unordered_map<std::string, const GgufTensor*> tensors_;
};

Result<Sizes> ReadSizes(const Value& metadata) {
  Sizes s;
  OCTAVO_ASSIGN_OR_RETURN(s.layers, RequireSize(metadata, "llama.block_count"));
  OCTAVO_ASSIGN_OR_RETURN(s.hidden, RequireSize(metadata, "llama.embedding_length"));
  OCTAVO_ASSIGN_OR_RETURN(s.intermediate, RequireSize(metadata, "llama.feed_forward_length"));
  OCTAVO_ASSIGN_OR_RETURN(s.heads, RequireSize(metadata, "llama.attention.head_count"));
  OCTAVO_ASSIGN_OR_RETURN(s.kv_heads, SizeOr(metadata, "llama.attention.head_count_kv", s.heads));
  OCTAVO_ASSIGN_OR_RETURN(s.head_dim,
                          SizeOr(metadata, "llama.attention.key_length", s.hidden / s.heads));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t rotary,
                          SizeOr(metadata, "llama.rope.dimension_count", s.head_dim));
  if (rotary != s.head_dim || s.head_dim % 2 != 0) {
    return Unsupported(
        fmt::format("llama.rope.dimension_count is {}, expected the head size {}, "
                    "an even number",
                    rotary, s.head_dim));
  }
  if (s.heads % s.kv_heads != 0) {
    return CorruptFile(
        fmt::format("{} heads cannot share {} key-value heads", s.heads, s.kv_heads));
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t value_dim,
                          SizeOr(metadata, "llama.attention.value_length", s.head_dim));
  if (value_dim != s.head_dim) {
    return Unsupported(
        fmt::format("llama.attention.value_length is {}, expected {}", value_dim, s.head_dim));
  }
  return s;
}

// The number of which `value` is the nearest float32, with the fewest digits: 9.99999974e-06 is
// 1e-05.
double DecimalOfFloat(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), static_cast<float>(value));
  double decimal = value;
  std::from_chars(text.data(), end.ptr, decimal);
  return decimal;
}

// config.json's rope_scaling: null, or linear scaling.
Result<Value> RopeScaling(const Value& metadata) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string type,
                          metadata.GetString("llama.rope.scaling.type", "none"));
  if (type == "none") return Value();
  if (type != "linear") {
    return Unsupported("llama.rope.scaling.type is " + type +
                       ", only none and linear are imported");
  }
  OCTAVO_ASSIGN_OR_RETURN(const double factor,
                          metadata.GetDouble("llama.rope.scaling.factor", 1.0));
  return Value(Value::Object{{"type", "linear"}, {"factor", DecimalOfFloat(factor)}});
}

Result<Value> MakeConfig(const Value& metadata, const Sizes& s, bool tied) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t context, RequireSize(metadata, "llama.context_length"));
  OCTAVO_ASSIGN_OR_RETURN(const double epsilon,
                          metadata.GetDouble("llama.attention.layer_norm_rms_epsilon", 1e-5));
  OCTAVO_ASSIGN_OR_RETURN(const double theta, metadata.GetDouble("llama.rope.freq_base", 10000.0));
  OCTAVO_ASSIGN_OR_RETURN(Value rope_scaling, RopeScaling(metadata));
  Value config = Value::Object{
      {"architectures", Value::Array{"LlamaForCausalLM"}},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
  };
  OCTAVO_RETURN_IF_ERROR(SetTokenIds(metadata, s.vocab, config));
  config.Set("hidden_act", "silu");
  config.Set("hidden_size", s.hidden);
  // Not in the file, and of use only to training: the usual 1 / sqrt(hidden size).
  config.Set("initializer_range", 1.0 / std::sqrt(static_cast<double>(s.hidden)));
  config.Set("intermediate_size", s.intermediate);
  config.Set("max_position_embeddings", context);
  config.Set("mlp_bias", false);
  config.Set("model_type", "llama");
  config.Set("num_attention_heads", s.heads);
  config.Set("num_hidden_layers", s.layers);
  config.Set("num_key_value_heads", s.kv_heads);
  if (s.head_dim * s.heads != s.hidden) config.Set("head_dim", s.head_dim);
  config.Set("pretraining_tp", 1);
  config.Set("rms_norm_eps", DecimalOfFloat(epsilon));
  config.Set("rope_scaling", std::move(rope_scaling));
  config.Set("rope_theta", DecimalOfFloat(theta));
  config.Set("tie_word_embeddings", tied);
  config.Set("torch_dtype", "bfloat16");
  config.Set("use_cache", true);
  config.Set("vocab_size", s.vocab);
  return config;
}

Result<std::vector<ImportedTensor>> FindTensors(const GgufFile& file, const Sizes& s) {
  TensorTable table(file);
  std::vector<ImportedTensor> tensors;
  const auto take = [&](const std::string& source, std::string name, const Shape& shape,
                        int64_t rotary_heads) -> Status {
    OCTAVO_ASSIGN_OR_RETURN(const GgufTensor* tensor, table.Take(source + ".weight", shape));
    tensors.push_back({name + ".weight", tensor, rotary_heads});
    return OkStatus();
  };
  OCTAVO_RETURN_IF_ERROR(take("token_embd", "model.embed_tokens", {s.vocab, s.hidden}, 0));
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    for (const LayerTensor& part : kLayerTensors) {
      OCTAVO_RETURN_IF_ERROR(take(fmt::format("blk.{}.{}", layer, part.source),
                                  fmt::format("model.layers.{}.{}", layer, part.name),
                                  part.shape(s),
                                  part.rotary_heads == nullptr ? 0 : part.rotary_heads(s)));
    }
  }
  OCTAVO_RETURN_IF_ERROR(take("output_norm", "model.norm", {s.hidden}, 0));
  if (table.Contains("output.weight")) {
    OCTAVO_RETURN_IF_ERROR(take("output", "lm_head", {s.vocab, s.hidden}, 0));
  }
  OCTAVO_RETURN_IF_ERROR(table.CheckAllTaken(file));
  return tensors;
}

// Rows of the embedding: older files do not state the size of the vocabulary.
Result<int64_t> VocabSize(const GgufFile& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.name == "token_embd.weight" && !tensor.shape.empty()) return tensor.shape[0];
  }
  return NotFound("tensor token_embd.weight is missing: a file without weights cannot be imported");
}

Status CheckVariant(const Value& metadata) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string architecture,
                          metadata.RequireString("general.architecture"));
  if (architecture != "llama") {
    return Unsupported("architecture " + architecture + ", only llama is imported");
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t experts, metadata.GetInt("llama.expert_count", 0));
  if (experts != 0) return Unsupported(fmt::format("llama with {} experts", experts));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t parts, metadata.GetInt("split.count", 1));
  if (parts > 1) {
    return Unsupported(
        fmt::format("one of {} parts of a split model: join them with "
                    "llama-gguf-split --merge first",
                    parts));
  }
  return OkStatus();
}

}  // namespace

Result<ImportedModel> PlanLlamaImport(const GgufFile& file) {
  const Value& metadata = file.metadata();
  OCTAVO_RETURN_IF_ERROR(CheckVariant(metadata));
  OCTAVO_ASSIGN_OR_RETURN(Sizes sizes, ReadSizes(metadata));
  OCTAVO_ASSIGN_OR_RETURN(sizes.vocab, VocabSize(file));
  ImportedModel model;
  OCTAVO_ASSIGN_OR_RETURN(model.tensors, FindTensors(file, sizes));
  const bool tied = model.tensors.back().name != "lm_head.weight";
  OCTAVO_ASSIGN_OR_RETURN(model.config, MakeConfig(metadata, sizes, tied));
  model.generation_config = Value::MakeObject();
  OCTAVO_RETURN_IF_ERROR(SetTokenIds(metadata, sizes.vocab, model.generation_config));
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
