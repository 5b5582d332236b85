#include "compress/block_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compress/layer_error.h"
#include "quant/scheme.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

Result<Tensor> ReadFinite(const Checkpoint& checkpoint, const std::string& name) {
  OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(name));
  auto tensor = ToFloatTensor(view);
  if (!tensor.ok()) return tensor.status().Annotate(name);
  const std::span<const float> values = tensor->data<float>();
  const auto bad =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (bad != values.end()) {
    return InvalidArgument(fmt::format(
        "{} (in {}) holds {} at element {}; a model with such a weight cannot be quantized", name,
        checkpoint.FileOf(name), *bad, bad - values.begin()));
  }
  return tensor;
}

// Null where the model has none there.
Result<std::shared_ptr<NormWork>> ReadNorm(const Checkpoint& checkpoint, const ModelSpec& spec,
                                           const Norm& of_source) {
  if (!of_source.exists()) return std::shared_ptr<NormWork>();
  auto norm = std::make_shared<NormWork>();
  norm->name = of_source.name;
  norm->less = spec.norm_adds_one ? 1.0F : 0.0F;
  OCTAVO_ASSIGN_OR_RETURN(const TensorView stored, checkpoint.Find(norm->name + ".weight"));
  norm->dtype = stored.dtype;
  OCTAVO_ASSIGN_OR_RETURN(norm->weight, ReadFinite(checkpoint, norm->name + ".weight"));
  return norm;
}

// `tensor` is the layer's own, or what stands for it.
Result<LayerWork> ReadLayer(const Checkpoint& checkpoint, const LinearLayer& layer,
                            const QuantizationPlan& plan, const std::string& tensor) {
  LayerWork work;
  work.layer = &layer;
  const auto owner = plan.owners.find(layer.name);
  work.owner = owner == plan.owners.end() ? nullptr : owner->second;
  OCTAVO_ASSIGN_OR_RETURN(work.weight, ReadFinite(checkpoint, tensor));
  return work;
}

// What a layer has on disk but its bias.
Result<LayerTensors> PackLayer(const LayerWork& layer, const Checkpoint& checkpoint) {
  LayerTensors tensors;
  const std::string weight_name = layer.layer->name + ".weight";
  if (layer.quantized) {
    OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(*layer.layer));
    OCTAVO_ASSIGN_OR_RETURN(tensors, scheme->pack(*layer.layer, layer.quantized->Clone()));
    if (layer.input && scheme->pack_input != nullptr) {
      OCTAVO_ASSIGN_OR_RETURN(LayerTensors input, scheme->pack_input(*layer.layer, *layer.input));
      tensors.merge(input);
    }
    if (layer.output && scheme->pack_output != nullptr) {
      OCTAVO_ASSIGN_OR_RETURN(LayerTensors output,
                              scheme->pack_output(*layer.layer, *layer.output));
      tensors.merge(output);
    }
    return tensors;
  }
  if (layer.layer->quantization.weights) {
    return Internal(layer.layer->name + " was to be quantized, but no modifier did it");
  }
  OCTAVO_ASSIGN_OR_RETURN(const TensorView source, checkpoint.Find(weight_name));
  if (layer.changed) {
    OCTAVO_ASSIGN_OR_RETURN(tensors["weight"],
                            FromFloat(layer.weight.data<float>(), source.dtype, source.shape));
  } else {
    tensors["weight"] = Tensor::CopyOf(source);
  }
  return tensors;
}

// Prepares the group with these weights, float32, in place of the layers' own.
Status PrepareFloatGroup(const std::vector<TensorView>& weights, std::vector<LayerViews> views,
                         LinearGroup* group, const Context& context) {
  LinearGroup dense;
  for (size_t l = 0; l < weights.size(); ++l) {
    std::erase_if(views[l], [](const auto& entry) { return entry.first != "bias"; });
    views[l]["weight"] = weights[l];
    LinearLayer layer = group->layers[l];
    layer.quantization = {};
    dense.layers.push_back(std::move(layer));
  }
  OCTAVO_RETURN_IF_ERROR(PrepareGroup(&dense, views, {}, context));
  group->parts = std::move(dense.parts);
  group->part_columns = std::move(dense.part_columns);
  return OkStatus();
}

Status SetNorms(const PackedBlock& packed, const ModelSpec& spec, Block* block) {
  std::vector<std::pair<std::string, TensorView>> found = packed.copied_norms;
  for (const auto& [name, tensor] : packed.norms) found.emplace_back(name, tensor.view());
  for (Norm* norm : block->norms()) {
    const auto stored = std::find_if(found.begin(), found.end(), [&](const auto& candidate) {
      return candidate.first == norm->name + ".weight";
    });
    OCTAVO_CHECK(stored != found.end()) << norm->name;
    OCTAVO_ASSIGN_OR_RETURN(norm->weight, ReadNormWeight(spec, stored->second, norm->size));
  }
  block->loaded = true;
  return OkStatus();
}

}  // namespace

Result<BlockWork> ReadBlockWork(const LoadedModel& source, const QuantizationPlan& plan,
                                int64_t index) {
  const Checkpoint& checkpoint = source.checkpoint();
  const Block& block = source.model().blocks[static_cast<size_t>(index)];
  const Block& target = plan.target.blocks[static_cast<size_t>(index)];
  const ModelSpec& spec = source.model().spec;
  OCTAVO_ASSIGN_OR_RETURN(const auto attention_norm,
                          ReadNorm(checkpoint, spec, block.attention_norm));
  OCTAVO_ASSIGN_OR_RETURN(const auto mlp_norm, ReadNorm(checkpoint, spec, block.mlp_norm));

  BlockWork work{.index = index, .name = block.name, .groups = {}};
  const auto source_groups = block.groups();
  const auto target_groups = target.groups();
  for (size_t g = 0; g < source_groups.size(); ++g) {
    GroupWork group;
    group.source = source_groups[g];
    if (group.source == &block.qkv) group.norm = attention_norm;
    if (group.source == &block.gate_up) group.norm = mlp_norm;
    for (const LinearLayer& layer : target_groups[g]->layers) {
      OCTAVO_ASSIGN_OR_RETURN(LayerWork layer_work,
                              ReadLayer(checkpoint, layer, plan, layer.name + ".weight"));
      group.layers.push_back(std::move(layer_work));
    }
    work.groups.push_back(std::move(group));
  }
  return work;
}

Result<BlockWork> ReadHeadWork(const LoadedModel& source, const QuantizationPlan& plan) {
  const Model& model = source.model();
  const LinearLayer& layer = plan.target.head.layers.front();
  const std::string& module = plan.unties_head ? model.names.embedding : layer.name;
  GroupWork group;
  group.source = &model.head;
  OCTAVO_ASSIGN_OR_RETURN(LayerWork layer_work,
                          ReadLayer(source.checkpoint(), layer, plan, module + ".weight"));
  group.layers.push_back(std::move(layer_work));
  BlockWork work{.index = -1, .name = layer.name, .groups = {}};
  work.groups.push_back(std::move(group));
  return work;
}

Result<BlockWork> ReadEmbeddingWork(const LoadedModel& source, const QuantizationPlan& plan) {
  const LinearLayer& layer = plan.target.embedding_layer;
  GroupWork group;
  OCTAVO_ASSIGN_OR_RETURN(LayerWork layer_work,
                          ReadLayer(source.checkpoint(), layer, plan, layer.name + ".weight"));
  group.layers.push_back(std::move(layer_work));
  BlockWork work{.index = -1, .name = layer.name, .groups = {}};
  work.groups.push_back(std::move(group));
  return work;
}

GroupWork* FindGroup(BlockWork* work, const LinearGroup& group) {
  const auto found =
      std::find_if(work->groups.begin(), work->groups.end(),
                   [&](const GroupWork& candidate) { return candidate.source == &group; });
  return found == work->groups.end() ? nullptr : &*found;
}

Result<PackedBlock> PackBlock(const BlockWork& work, const LoadedModel& source,
                              QuantizationReport* report, const Context& context) {
  PackedBlock packed;
  for (const GroupWork& group : work.groups) {
    PackedBlock::Group packed_group;
    for (const LayerWork& layer : group.layers) {
      auto tensors = PackLayer(layer, source.checkpoint());
      if (!tensors.ok()) return tensors.status().Annotate(layer.layer->name);
      LayerViews views;
      for (const auto& [suffix, tensor] : *tensors) views[suffix] = tensor.view();
      const std::string bias = layer.layer->name + ".bias";
      if (source.checkpoint().Contains(bias))
        views["bias"] = source.checkpoint().Find(bias).value();
      packed_group.tensors.push_back(std::move(tensors).value());
      packed_group.views.push_back(std::move(views));
      packed.layers.push_back(layer.layer);
      if (!layer.quantized) continue;
      OCTAVO_ASSIGN_OR_RETURN(LayerReport measured, MeasureLayer(layer, group.statistics, context));
      report->layers.push_back(std::move(measured));
    }
    packed.groups.push_back(std::move(packed_group));
    if (group.norm == nullptr) continue;
    const std::string name = group.norm->name + ".weight";
    OCTAVO_ASSIGN_OR_RETURN(const TensorView stored, source.checkpoint().Find(name));
    OCTAVO_ASSIGN_OR_RETURN(
        Tensor norm, FromFloat(group.norm->weight.data<float>(), stored.dtype, stored.shape));
    packed.norms.emplace_back(name, std::move(norm));
  }
  if (work.index < 0) return packed;
  const Block& block = source.model().blocks[static_cast<size_t>(work.index)];
  for (const Norm* norm : block.norms()) {
    if (norm == &block.attention_norm || norm == &block.mlp_norm) continue;
    const std::string name = norm->name + ".weight";
    OCTAVO_ASSIGN_OR_RETURN(const TensorView stored, source.checkpoint().Find(name));
    packed.copied_norms.emplace_back(name, stored);
  }
  return packed;
}

void LogBlock(const BlockWork& work, const QuantizationReport& report, Logger& log) {
  std::string line;
  for (const LayerReport& layer : report.layers) {
    if (layer.name != work.name && !layer.name.starts_with(work.name + ".")) continue;
    const std::string_view short_name =
        std::string_view(layer.name).substr(layer.name.rfind('.') + 1);
    line += fmt::format("{}{} {:.1e} -> {:.1e}", line.empty() ? "" : ", ", short_name,
                        layer.error_to_nearest, layer.error);
  }
  if (!line.empty()) log.Info(fmt::format("{}: error to nearest -> as done: {}", work.name, line));
}

Status WritePackedBlock(const PackedBlock& packed, CheckpointWriter* writer) {
  size_t layer = 0;
  for (const PackedBlock::Group& group : packed.groups) {
    for (const LayerTensors& tensors : group.tensors) {
      const std::string& name = packed.layers[layer++]->name;
      for (const auto& [suffix, tensor] : tensors) {
        OCTAVO_RETURN_IF_ERROR(writer->Write(fmt::format("{}.{}", name, suffix), tensor));
      }
    }
  }
  for (const auto& [name, tensor] : packed.norms)
    OCTAVO_RETURN_IF_ERROR(writer->Write(name, tensor));
  return OkStatus();
}

Status PreparePackedBlock(const PackedBlock& packed, Model* target, int64_t index,
                          const Context& context) {
  Block& block = target->blocks[static_cast<size_t>(index)];
  const auto groups = block.groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    OCTAVO_RETURN_IF_ERROR(PrepareGroup(groups[g], packed.groups[g].views, {}, context));
  }
  return SetNorms(packed, target->spec, &block);
}

Status PrepareDequantizedBlock(PackedBlock* packed, Model* target, int64_t index,
                               const Context& context) {
  Block& block = target->blocks[static_cast<size_t>(index)];
  const auto groups = block.groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<LayerViews>& views = packed->groups[g].views;
    std::vector<TensorView> weights;
    for (size_t l = 0; l < groups[g]->layers.size(); ++l) {
      const LinearLayer& layer = groups[g]->layers[l];
      OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
      OCTAVO_ASSIGN_OR_RETURN(Tensor weight, scheme->dequantize(layer, views[l]));
      weights.push_back(weight.view());
      packed->dequantized.push_back(std::move(weight));
    }
    OCTAVO_RETURN_IF_ERROR(PrepareFloatGroup(weights, views, groups[g], context));
  }
  return SetNorms(*packed, target->spec, &block);
}

Status PrepareFloatBlock(const BlockWork& work, const PackedBlock& packed, Model* target,
                         const Context& context) {
  Block& block = target->blocks[static_cast<size_t>(work.index)];
  const auto groups = block.groups();
  for (size_t g = 0; g < groups.size(); ++g) {
    std::vector<TensorView> weights;
    for (const LayerWork& layer : work.groups[g].layers) weights.push_back(layer.weight.view());
    OCTAVO_RETURN_IF_ERROR(PrepareFloatGroup(weights, packed.groups[g].views, groups[g], context));
  }
  return SetNorms(packed, target->spec, &block);
}

void ReleasePackedBlock(Model* target, int64_t index) {
  Block& block = target->blocks[static_cast<size_t>(index)];
  for (LinearGroup* group : block.groups()) {
    group->parts.clear();
    group->part_columns.clear();
  }
  for (Norm* norm : block.norms()) norm->weight = Tensor();
  block.loaded = false;
}

}  // namespace octavo
