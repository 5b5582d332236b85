#include "runtime/online.h"

#include <fmt/format.h>

#include <vector>

#include "quant/kv_cache.h"
#include "quant/transforms.h"

namespace octavo {

namespace {

// ---- transforms --------------------------------------------------------------------------------

class TransformLoader {
 public:
  TransformLoader(const std::vector<TransformUse>& uses, TransformMaker* maker)
      : uses_(uses), maker_(maker), matched_(uses.size(), false) {}

  // The transforms of a module at a location, on rows of `width`.
  Result<RowTransforms> At(TransformLocation location, const ModuleName& module, int64_t width) {
    RowTransforms transforms;
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (uses_[i].location != location) continue;
      OCTAVO_ASSIGN_OR_RETURN(const bool matches, uses_[i].Matches(module));
      if (!matches) continue;
      matched_[i] = true;
      OCTAVO_ASSIGN_OR_RETURN(auto transform, maker_->Make(uses_[i], module.name, width));
      transforms.push_back(std::move(transform));
    }
    return transforms;
  }

  Status Load(LinearGroup* group) {
    for (LinearLayer& layer : group->layers) {
      const ModuleName module{layer.name, "Linear"};
      OCTAVO_ASSIGN_OR_RETURN(layer.input_transforms,
                              At(TransformLocation::kInput, module, layer.k));
      OCTAVO_ASSIGN_OR_RETURN(layer.output_transforms,
                              At(TransformLocation::kOutput, module, layer.n));
    }
    return OkStatus();
  }

  Status Load(const ModuleName& attention, int64_t head_dim, Block* block) {
    OCTAVO_ASSIGN_OR_RETURN(block->query_transforms,
                            At(TransformLocation::kQuery, attention, head_dim));
    OCTAVO_ASSIGN_OR_RETURN(block->key_transforms,
                            At(TransformLocation::kKey, attention, head_dim));
    return OkStatus();
  }

  // A transform that nothing here can apply would be left out silently.
  Status CheckAllMatched() const {
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (matched_[i]) continue;
      return Unsupported(fmt::format(
          "quantization_config.transform_config: {} matches no module that it could be applied to; "
          "linear layers have input and output, attention q_attn and k_cache",
          uses_[i].Name()));
    }
    return OkStatus();
  }

 private:
  const std::vector<TransformUse>& uses_;
  TransformMaker* maker_;
  std::vector<bool> matched_;
};

// Nothing transforms what the embedding gives.
Status CheckEmbedding(const std::vector<TransformUse>& uses, const std::string& embedding) {
  for (const TransformUse& use : uses) {
    OCTAVO_ASSIGN_OR_RETURN(const bool matches, use.Matches({embedding, "Embedding"}));
    if (matches)
      return Unsupported(
          fmt::format("quantization_config.transform_config: {} of {} is not "
                      "supported while the model runs",
                      use.Name(), embedding));
  }
  return OkStatus();
}

// ---- queries, keys and values ------------------------------------------------------------------

Status CheckAttention(const QuantizationArgs& args, std::string_view what) {
  const std::string reason = WhyUnsupportedForAttention(args);
  if (reason.empty()) return OkStatus();
  return Unsupported(
      fmt::format("quantization_config: {} ({}): {}", what, args.ToString(), reason));
}

// Releases up to 0.5 declare the cache as the output of k_proj and v_proj, and keep its scales
// there.
void ForgetOutputOfProjections(const std::optional<QuantizationArgs>& cache, LinearGroup* qkv) {
  for (size_t i = 1; i < qkv->layers.size(); ++i) {
    std::optional<QuantizationArgs>& output = qkv->layers[i].quantization.output_activations;
    if (output == cache) output.reset();
  }
}

Status LoadScales(const Checkpoint& checkpoint, const ModelSpec& spec, Block* block,
                  TensorNameSet* used, const Context& context) {
  const auto& query = block->query_quantization;
  OCTAVO_ASSIGN_OR_RETURN(
      AttentionScales scales,
      ReadAttentionScales(checkpoint, AttentionInFile(*block, spec), &*block->cache_quantization,
                          query ? &*query->input_activations : nullptr));
  if (scales.cache) block->cache = *std::move(scales.cache);
  if (scales.query) block->query_scales = *std::move(scales.query);
  for (std::string& name : scales.tensors) used->insert(std::move(name));
  for (const std::string& warning : scales.warnings) context.log.Warning(warning);
  return OkStatus();
}

}  // namespace

Result<TensorNameSet> LoadTransforms(const Value& transform_config, const Checkpoint& checkpoint,
                                     Model* model) {
  TensorNameSet used;
  OCTAVO_ASSIGN_OR_RETURN(
      const std::vector<TransformUse> uses,
      ParseOnlineTransforms(transform_config, "quantization_config.transform_config"));
  if (uses.empty()) return used;
  OCTAVO_RETURN_IF_ERROR(CheckEmbedding(uses, model->names.embedding));
  TransformMaker maker(checkpoint, uses);
  TransformLoader loader(uses, &maker);
  for (Block& block : model->blocks) {
    for (LinearGroup* group : block.groups()) OCTAVO_RETURN_IF_ERROR(loader.Load(group));
    OCTAVO_RETURN_IF_ERROR(
        loader.Load({block.attention, model->attention_class}, model->spec.head_dim, &block));
  }
  OCTAVO_RETURN_IF_ERROR(loader.Load(&model->head));
  OCTAVO_RETURN_IF_ERROR(loader.CheckAllMatched());
  for (std::string& name : maker.TensorNames()) used.insert(std::move(name));
  return used;
}

Result<TensorNameSet> LoadOnline(const QuantizationConfig& config, const Checkpoint& checkpoint,
                                 Model* model, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(TensorNameSet used,
                          LoadTransforms(config.transform_config, checkpoint, model));
  for (Block& block : model->blocks) {
    if (!block.cache_quantization) continue;
    if (block.query_quantization)
      OCTAVO_RETURN_IF_ERROR(CheckAttention(*block.query_quantization->input_activations,
                                            "input_activations of " + block.attention));
    OCTAVO_RETURN_IF_ERROR(CheckAttention(*block.cache_quantization, "kv_cache_scheme"));
    ForgetOutputOfProjections(block.cache_quantization, &block.qkv);
    OCTAVO_RETURN_IF_ERROR(LoadScales(checkpoint, model->spec, &block, &used, context));
  }
  return used;
}

}  // namespace octavo
