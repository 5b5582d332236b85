#include "convert/resave.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "io/checkpoint_writer.h"
#include "io/passive_files.h"
#include "model/architecture.h"
#include "model/graph.h"
#include "quant/config.h"
#include "quant/pattern.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

// An open checkpoint and what its config declares of each layer.
struct OpenCheckpoint {
  Checkpoint checkpoint;
  QuantizationConfig config;
  Model model;

  // The linear layers that have tensors of their own; a tied head has none.
  std::vector<const LinearLayer*> Layers() const {
    std::vector<const LinearLayer*> layers;
    const auto add = [&](const LinearGroup& group) {
      for (const LinearLayer& layer : group.layers) {
        if (!checkpoint.NamesOf(layer.name).empty()) layers.push_back(&layer);
      }
    };
    for (const Block& block : model.blocks) {
      for (const LinearGroup* group : block.groups()) add(*group);
    }
    add(model.head);
    return layers;
  }

  LayerViews Tensors(const LinearLayer& layer) const {
    LayerViews views;
    for (const std::string& name : checkpoint.NamesOf(layer.name))
      views[name.substr(layer.name.size() + 1)] = checkpoint.Find(name).value();
    return views;
  }

  void Forget(const LinearLayer& layer) const {
    for (const std::string& name : checkpoint.NamesOf(layer.name)) checkpoint.Forget(name);
  }
};

Result<OpenCheckpoint> Open(const std::filesystem::path& folder) {
  OpenCheckpoint opened;
  OCTAVO_ASSIGN_OR_RETURN(opened.checkpoint, Checkpoint::Open(folder));
  const Value& config = opened.checkpoint.config();
  OCTAVO_ASSIGN_OR_RETURN(auto quantization, FindQuantizationConfig(config));
  if (!quantization) {
    return InvalidArgument(
        "config.json has no quantization_config: the checkpoint is not quantized, so there is "
        "nothing to convert; `octavo quantize` quantizes it");
  }
  opened.config = *std::move(quantization);
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config));
  OCTAVO_ASSIGN_OR_RETURN(const ModelSpec spec, architecture->parse_config(config));
  OCTAVO_ASSIGN_OR_RETURN(opened.model, BuildGraph(*architecture, spec, &opened.config));
  if (opened.model.embedding_layer.quantization.weights)
    return Unsupported(opened.model.embedding_layer.name + ": a quantized embedding");
  return opened;
}

// The layer as it will be stored; nullopt: it is not quantized, and copied.
Result<std::optional<ResavedLayer>> Resave(const OpenCheckpoint& source, const LinearLayer& layer) {
  const LayerViews tensors = source.Tensors(layer);
  OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
  OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, layer, tensors));
  if (!layer.quantization.weights) return std::optional<ResavedLayer>();
  if (scheme->resave == nullptr) {
    return Unsupported(
        fmt::format("{}: {} is no format that is converted", layer.name, scheme->name));
  }
  OCTAVO_ASSIGN_OR_RETURN(ResavedLayer resaved, scheme->resave(layer, tensors));
  source.Forget(layer);
  return std::optional<ResavedLayer>(std::move(resaved));
}

struct ResavePlan {
  std::map<std::string, std::vector<PlannedTensor>> layers;  // of those that are quantized
  std::vector<PlannedTensor> tensors;                        // all, in the source's order
  QuantizationConfig config;
};

std::string ModuleOf(const std::string& tensor_name) {
  return tensor_name.substr(0, tensor_name.rfind('.'));
}

// Whether a tensor of the source gives way to those of a re-saved layer.
bool IsReplaced(const ResavePlan& plan, const std::string& name) {
  return plan.layers.contains(ModuleOf(name)) && !name.ends_with(".bias");
}

Status CheckGroupOrder(const LinearLayer& layer, const ResaveOptions& options) {
  if (layer.quantization.weights->actorder != ActOrder::kGroup || options.keep_group_order)
    return OkStatus();
  return Unsupported(fmt::format(
      "{}: the columns of a group are scattered (desc_act), which compressed-tensors keeps as "
      "weight_g_idx; its releases from 0.19 on, and vLLM with them, refuse that, while they read "
      "the checkpoint as it is. --keep-group-order writes it all the same, for Octavo and older "
      "releases",
      layer.name));
}

// Adds the layer to the group of its quantization.
void Declare(const LinearLayer& layer, QuantizationConfig* config) {
  QuantizationScheme scheme = layer.quantization;
  scheme.targets.clear();
  for (auto& [name, group] : config->config_groups) {
    QuantizationScheme known = group;
    known.targets.clear();
    if (!(known == scheme)) continue;
    group.targets.push_back(layer.name);
    return;
  }
  scheme.targets = {layer.name};
  config->config_groups.emplace_back(fmt::format("group_{}", config->config_groups.size()),
                                     std::move(scheme));
}

// One group is for all linear layers that are not in `ignore`; of several each names its own.
void FinishConfig(const OpenCheckpoint& source, ResavePlan* plan) {
  QuantizationConfig& config = plan->config;
  std::set<std::string> ignored;
  for (const std::string& name : source.checkpoint.Names()) {
    if (!IsReplaced(*plan, name) && LooksLikeLinear(name, source.checkpoint.Find(name)->shape))
      ignored.insert(ModuleOf(name));
  }
  // A tied head has no tensor, and is not quantized.
  if (!plan->layers.contains(source.model.names.head)) ignored.insert(source.model.names.head);
  config.ignore.assign(ignored.begin(), ignored.end());
  if (config.config_groups.size() == 1) config.config_groups.front().second.targets = {"Linear"};
  config.format = CheckpointFormat(config);
  config.quantization_status = "compressed";
  config.version = kFormatVersion;
}

Result<ResavePlan> MakePlan(const OpenCheckpoint& source, const ResaveOptions& options,
                            const Context& context) {
  ResavePlan plan;
  const std::vector<const LinearLayer*> layers = source.Layers();
  context.progress.Start("check", std::ssize(layers));
  for (const LinearLayer* layer : layers) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(const auto resaved, Resave(source, *layer));
    context.progress.Advance(1, layer->name);
    if (!resaved) continue;
    OCTAVO_RETURN_IF_ERROR(CheckGroupOrder(resaved->layer, options));
    Declare(resaved->layer, &plan.config);
    for (const auto& [suffix, tensor] : resaved->tensors)
      plan.layers[layer->name].push_back(
          {layer->name + "." + suffix, tensor.dtype(), tensor.shape()});
  }
  context.progress.Finish();
  if (plan.layers.empty()) return InvalidArgument("no layer of the checkpoint is quantized");
  FinishConfig(source, &plan);
  std::set<std::string> planned;
  for (const std::string& name : source.checkpoint.Names()) {
    if (!IsReplaced(plan, name)) {
      OCTAVO_ASSIGN_OR_RETURN(const TensorView view, source.checkpoint.Find(name));
      plan.tensors.push_back({name, view.dtype, view.shape});
    } else if (planned.insert(ModuleOf(name)).second) {
      const auto& tensors = plan.layers.at(ModuleOf(name));
      plan.tensors.insert(plan.tensors.end(), tensors.begin(), tensors.end());
    }
  }
  return plan;
}

Status WriteWeights(const OpenCheckpoint& source, const ResavePlan& plan, CheckpointWriter* writer,
                    const Context& context) {
  context.progress.Start("convert", writer->total_bytes());
  for (const LinearLayer* layer : source.Layers()) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    if (!plan.layers.contains(layer->name)) continue;
    OCTAVO_ASSIGN_OR_RETURN(const auto resaved, Resave(source, *layer));
    for (const auto& [suffix, tensor] : resaved->tensors) {
      OCTAVO_RETURN_IF_ERROR(writer->Write(layer->name + "." + suffix, tensor));
      context.progress.Advance(tensor.num_bytes(), layer->name);
    }
  }
  for (const std::string& name : source.checkpoint.Names()) {
    if (IsReplaced(plan, name)) continue;
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, source.checkpoint.Find(name));
    OCTAVO_RETURN_IF_ERROR(writer->Write(name, view));
    source.checkpoint.Forget(name);
    context.progress.Advance(view.num_bytes(), name);
  }
  context.progress.Finish();
  return OkStatus();
}

Status WriteOtherFiles(const OpenCheckpoint& source, const ResavePlan& plan,
                       const std::filesystem::path& folder) {
  Value config = source.checkpoint.config();
  if (Value* text_config = config.Find("text_config")) text_config->Erase("quantization_config");
  config.Set("quantization_config", ToValue(plan.config));
  OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(
      folder / "config.json",
      WriteJson(config, {.indent = 2, .sort_keys = true, .ensure_ascii = false})));
  auto copied = CopyPassiveFiles(source.checkpoint.folder(), folder);
  return copied.ok() ? OkStatus() : copied.status();
}

bool SameBytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.elements() == b.elements() &&
         std::memcmp(a.bytes, b.bytes, static_cast<size_t>(a.num_bytes())) == 0;
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty();
  return SameBytes(a, b);
}

// Reads the layer as each file has it.
Status CompareLayer(const OpenCheckpoint& source, const LinearLayer& layer,
                    const OpenCheckpoint& output, const LinearLayer& written) {
  const auto unpack = [](const OpenCheckpoint& from,
                         const LinearLayer& what) -> Result<QuantizedWeight> {
    const LayerViews tensors = from.Tensors(what);
    OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(what));
    OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, what, tensors));
    OCTAVO_ASSIGN_OR_RETURN(QuantizedWeight weight, scheme->unpack(what, tensors));
    from.Forget(what);
    return weight;
  };
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight a, unpack(source, layer));
  OCTAVO_ASSIGN_OR_RETURN(const QuantizedWeight b, unpack(output, written));
  const bool same = SameTensor(a.codes, b.codes) && SameTensor(a.scale, b.scale) &&
                    SameTensor(a.zero_point, b.zero_point) &&
                    SameTensor(a.group_of_column, b.group_of_column);
  return same ? OkStatus() : Internal(layer.name + " reads back as another weight");
}

Status Verify(const OpenCheckpoint& source, const ResavePlan& plan,
              const std::filesystem::path& folder, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const OpenCheckpoint output, Open(folder));
  const std::vector<const LinearLayer*> layers = source.Layers();
  const std::vector<const LinearLayer*> written = output.Layers();
  if (layers.size() != written.size()) return Internal("layers are missing");
  context.progress.Start("verify", std::ssize(layers));
  for (size_t i = 0; i < layers.size(); ++i) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    if (plan.layers.contains(layers[i]->name))
      OCTAVO_RETURN_IF_ERROR(CompareLayer(source, *layers[i], output, *written[i]));
    context.progress.Advance(1, layers[i]->name);
  }
  for (const std::string& name : source.checkpoint.Names()) {
    if (IsReplaced(plan, name)) continue;
    OCTAVO_ASSIGN_OR_RETURN(const TensorView a, source.checkpoint.Find(name));
    OCTAVO_ASSIGN_OR_RETURN(const TensorView b, output.checkpoint.Find(name));
    if (!SameBytes(a, b)) return Internal(name + " differs from the source's");
    source.checkpoint.Forget(name);
    output.checkpoint.Forget(name);
  }
  context.progress.Finish();
  return OkStatus();
}

Status WriteFolder(const OpenCheckpoint& source, const ResavePlan& plan, CheckpointWriter* writer,
                   const Context& context) {
  OCTAVO_RETURN_IF_ERROR(WriteWeights(source, plan, writer, context));
  OCTAVO_RETURN_IF_ERROR(WriteOtherFiles(source, plan, writer->unfinished_folder()));
  OCTAVO_RETURN_IF_ERROR(writer->Finish());
  OCTAVO_RETURN_IF_ERROR(Verify(source, plan, writer->unfinished_folder(), context)
                             .Annotate("the result was checked"));
  return writer->Commit();
}

}  // namespace

Status ResaveCheckpoint(const std::filesystem::path& folder, const std::filesystem::path& out,
                        const ResaveOptions& options, const Context& context) {
  const auto in_folder = [&](const Status& status) { return status.Annotate(folder.string()); };
  const auto source = Open(folder);
  if (!source.ok()) return in_folder(source.status());
  if (source->config.quant_method == QuantizationConfig().quant_method)
    return in_folder(InvalidArgument("the checkpoint is in compressed-tensors format already"));
  const auto plan = MakePlan(*source, options, context);
  if (!plan.ok()) return in_folder(plan.status());
  OCTAVO_ASSIGN_OR_RETURN(CheckpointWriter writer,
                          CheckpointWriter::Create(out, plan->tensors,
                                                   {.max_shard_bytes = options.max_shard_bytes,
                                                    .force = options.force}));
  const Status status = WriteFolder(*source, *plan, &writer, context);
  if (!status.ok()) {
    writer.Abandon();
    return status;
  }
  context.log.Info(fmt::format("{} layers of {} are {} now, {:.1f} MB: {}", plan->layers.size(),
                               source->config.quant_method, plan->config.format,
                               static_cast<double>(writer.total_bytes()) / 1e6, out.string()));
  return OkStatus();
}

}  // namespace octavo
