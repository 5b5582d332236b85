#include "model/graph.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>

namespace octavo {

namespace {

class GraphBuilder {
 public:
  GraphBuilder(const ModelSpec& spec, const SchemeResolver* schemes)
      : spec_(spec), schemes_(schemes) {}

  // Layers `prefix` + names[i], each with n[i] outputs and k inputs.
  Result<LinearGroup> Group(const std::string& prefix, const std::vector<std::string>& names,
                            const std::vector<int64_t>& n, int64_t k, bool has_bias) const {
    OCTAVO_CHECK(names.size() == n.size());
    LinearGroup group;
    for (size_t i = 0; i < names.size(); ++i) {
      LinearLayer layer{.name = prefix + names[i],
                        .n = n[i],
                        .k = k,
                        .has_bias = has_bias,
                        .model_dtype = spec_.dtype,
                        .quantization = {}};
      if (schemes_ != nullptr) {
        OCTAVO_ASSIGN_OR_RETURN(auto declared, schemes_->Resolve({layer.name, "Linear"}));
        if (declared) layer.quantization = *std::move(declared);
      }
      group.layers.push_back(std::move(layer));
    }
    return group;
  }

 private:
  const ModelSpec& spec_;
  const SchemeResolver* schemes_;
};

void AddNorms(const ModelSpec& spec, const ModuleNames& names, const std::string& prefix,
              Block* block) {
  const auto norm = [&](const std::string& name, int64_t size) {
    return Norm{.name = prefix + name, .size = size, .weight = {}};
  };
  if (spec.pre_norms) {
    block->attention_norm = norm(names.attention_norm, spec.hidden_size);
    block->mlp_norm = norm(names.mlp_norm, spec.hidden_size);
  }
  if (spec.post_norms) {
    block->post_attention_norm = norm(names.post_attention_norm, spec.hidden_size);
    block->post_mlp_norm = norm(names.post_mlp_norm, spec.hidden_size);
  }
  if (spec.qk_norm == QkNorm::kNone) return;
  const bool rows = spec.qk_norm == QkNorm::kRows;
  block->q_norm = norm(names.q_norm, rows ? spec.q_size() : spec.head_dim);
  block->k_norm = norm(names.k_norm, rows ? spec.kv_size() : spec.head_dim);
}

// Outputs of the layers of a group, which may be stored as one.
std::vector<int64_t> Sizes(std::vector<int64_t> sizes, size_t layers) {
  if (layers == sizes.size()) return sizes;
  return {std::accumulate(sizes.begin(), sizes.end(), int64_t{0})};
}

Result<Block> BuildBlock(const GraphBuilder& builder, const ModelSpec& spec,
                         const ModuleNames& names, int64_t index) {
  Block block;
  block.name = fmt::format("{}.{}", names.blocks, index);
  const std::string prefix = block.name + ".";
  const std::string& query = names.qkv.front();
  block.attention = prefix + query.substr(0, query.rfind('.'));
  const bool one = names.qkv.size() == 1;
  block.key_projection = one ? block.attention + ".k_proj" : prefix + names.qkv[1];
  block.value_projection = one ? block.attention + ".v_proj" : prefix + names.qkv[2];
  AddNorms(spec, names, prefix, &block);
  OCTAVO_ASSIGN_OR_RETURN(
      block.qkv,
      builder.Group(prefix, names.qkv,
                    Sizes({spec.q_size(), spec.kv_size(), spec.kv_size()}, names.qkv.size()),
                    spec.hidden_size, spec.qkv_bias));
  OCTAVO_ASSIGN_OR_RETURN(block.attention_output,
                          builder.Group(prefix, {names.attention_output}, {spec.hidden_size},
                                        spec.q_size(), spec.attention_output_bias));
  OCTAVO_ASSIGN_OR_RETURN(
      block.gate_up,
      builder.Group(prefix, names.gate_up,
                    Sizes({spec.intermediate_size, spec.intermediate_size}, names.gate_up.size()),
                    spec.hidden_size, spec.mlp_bias));
  OCTAVO_ASSIGN_OR_RETURN(block.down, builder.Group(prefix, {names.down}, {spec.hidden_size},
                                                    spec.intermediate_size, spec.mlp_bias));
  return block;
}

// A group with weights is for layers, though its pattern may match the attention around them
// ("re:.*self_attn.*").
QuantizationConfig WithoutWeights(QuantizationConfig config) {
  std::erase_if(config.config_groups, [](const auto& group) { return group.second.weights; });
  return config;
}

// "LlamaAttention" of a LlamaForCausalLM.
std::string AttentionClass(const std::string& architecture) {
  return architecture.substr(0, architecture.find("For")) + "Attention";
}

}  // namespace

int64_t LinearGroup::n() const {
  int64_t n = 0;
  for (const LinearLayer& layer : layers) n += layer.n;
  return n;
}

std::vector<const Norm*> Block::norms() const {
  std::vector<const Norm*> norms = {&attention_norm, &mlp_norm, &post_attention_norm,
                                    &post_mlp_norm,  &q_norm,   &k_norm};
  std::erase_if(norms, [](const Norm* norm) { return !norm->exists(); });
  return norms;
}

std::vector<Norm*> Block::norms() {
  std::vector<Norm*> norms;
  for (const Norm* norm : std::as_const(*this).norms()) norms.push_back(const_cast<Norm*>(norm));
  return norms;
}

std::vector<ModuleName> Model::modules() const {
  std::vector<ModuleName> modules = {{names.embedding, "Embedding"}};
  const auto add = [&](const LinearGroup& group) {
    for (const LinearLayer& layer : group.layers) modules.push_back({layer.name, "Linear"});
  };
  for (const Block& block : blocks) {
    for (const LinearGroup* group : block.groups()) add(*group);
  }
  add(head);
  return modules;
}

std::vector<ModuleName> Model::attention_modules() const {
  std::vector<ModuleName> modules;
  modules.reserve(blocks.size());
  for (const Block& block : blocks) modules.push_back({block.attention, attention_class});
  return modules;
}

AttentionShapeInFile AttentionInFile(const Block& block, const ModelSpec& spec) {
  return {.module = block.attention,
          .k_proj = block.key_projection,
          .v_proj = block.value_projection,
          .heads = spec.num_heads,
          .kv_heads = spec.num_kv_heads};
}

Status DeclareAttention(const QuantizationConfig& config, Model* model) {
  OCTAVO_ASSIGN_OR_RETURN(const SchemeResolver schemes,
                          SchemeResolver::Make(WithoutWeights(config)));
  for (Block& block : model->blocks) {
    OCTAVO_ASSIGN_OR_RETURN(auto declared,
                            schemes.Resolve({block.attention, model->attention_class}));
    if (declared) block.query_quantization = *std::move(declared);
    if (config.kv_cache_scheme) {
      block.cache_quantization = config.kv_cache_scheme;
    } else if (!block.cache_quantization && block.query_quantization) {
      block.cache_quantization = block.query_quantization->input_activations;
    }
  }
  return OkStatus();
}

Result<Model> BuildGraph(const Architecture& architecture, const ModelSpec& spec,
                         const QuantizationConfig* quantization) {
  Model model;
  model.spec = spec;
  model.names = architecture.module_names(spec);
  model.embedding_layer = {.name = model.names.embedding,
                           .n = spec.vocab_size,
                           .k = spec.hidden_size,
                           .model_dtype = spec.dtype,
                           .quantization = {}};
  model.attention_class = AttentionClass(spec.architecture);
  std::optional<SchemeResolver> schemes;
  if (quantization != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(schemes, SchemeResolver::Make(*quantization));
    OCTAVO_ASSIGN_OR_RETURN(const auto declared,
                            schemes->Resolve({model.names.embedding, "Embedding"}));
    if (declared) model.embedding_layer.quantization = *declared;
  }
  const GraphBuilder builder(spec, schemes ? &*schemes : nullptr);
  for (int64_t i = 0; i < spec.num_layers; ++i) {
    OCTAVO_ASSIGN_OR_RETURN(Block block, BuildBlock(builder, spec, model.names, i));
    model.blocks.push_back(std::move(block));
  }
  if (quantization != nullptr) OCTAVO_RETURN_IF_ERROR(DeclareAttention(*quantization, &model));
  OCTAVO_ASSIGN_OR_RETURN(model.head, builder.Group("", {model.names.head}, {spec.vocab_size},
                                                    spec.hidden_size, false));
  return model;
}

}  // namespace octavo
