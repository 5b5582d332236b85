#include "runtime/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/architecture.h"
#include "quant/scheme.h"
#include "quant/transformed_linear.h"
#include "tensor/convert.h"

namespace octavo {

namespace {

// The tensors "<module>.<suffix>" of a checkpoint, by suffix, but for some.
LayerViews CollectTensors(const Checkpoint& checkpoint, const std::string& module,
                          const TensorNameSet& without) {
  LayerViews views;
  for (const std::string& name : checkpoint.NamesOf(module)) {
    if (!without.contains(name))
      views[name.substr(module.size() + 1)] = checkpoint.Find(name).value();
  }
  return views;
}

Result<Tensor> LoadNorm(const Checkpoint& checkpoint, const ModelSpec& spec,
                        const std::string& module, int64_t size) {
  const std::string name = module + ".weight";
  OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(name));
  auto weight = ReadNormWeight(spec, view, size);
  if (!weight.ok()) return weight.status().Annotate(name);
  return weight;
}

Status WarnOfUnmatched(const QuantizationConfig& config, const Model& model,
                       const Checkpoint& checkpoint, const Context& context) {
  std::vector<ModuleName> modules = model.modules();
  const std::vector<ModuleName> attention = model.attention_modules();
  modules.insert(modules.end(), attention.begin(), attention.end());
  OCTAVO_ASSIGN_OR_RETURN(UnmatchedPatterns unmatched, FindUnmatchedPatterns(config, modules));
  // Modules that are not known here, but are in the file, are ignored rightly.
  std::erase_if(unmatched.ignore,
                [&](const std::string& module) { return checkpoint.Contains(module + ".weight"); });
  if (!unmatched.targets.empty()) {
    context.log.Warning(fmt::format("quantization targets that match no layer: {}",
                                    fmt::join(unmatched.targets, ", ")));
  }
  if (!unmatched.ignore.empty()) {
    context.log.Warning(fmt::format("quantization ignore entries that match no layer: {}",
                                    fmt::join(unmatched.ignore, ", ")));
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadModel(const std::filesystem::path& folder,
                                               const LoadOptions& options, const Context& context) {
  auto loaded = std::make_unique<LoadedModel>();
  OCTAVO_ASSIGN_OR_RETURN(loaded->checkpoint_, Checkpoint::Open(folder));
  const auto in_folder = [&](const Status& status) { return status.Annotate(folder.string()); };

  auto quantization = FindQuantizationConfig(loaded->checkpoint_.config());
  if (!quantization.ok()) return in_folder(quantization.status());
  loaded->quantization_ = *std::move(quantization);
  const QuantizationConfig* config = loaded->quantization_ ? &*loaded->quantization_ : nullptr;

  auto architecture = FindArchitecture(loaded->checkpoint_.config());
  if (!architecture.ok()) return in_folder(architecture.status());
  auto spec = (*architecture)->parse_config(loaded->checkpoint_.config());
  if (!spec.ok()) return in_folder(spec.status().Annotate("config.json"));
  auto model = BuildGraph(**architecture, *spec, config);
  if (!model.ok()) return in_folder(model.status());
  loaded->model_ = std::move(model).value();
  loaded->prepare_ = options.prepare;
  if (config != nullptr)
    OCTAVO_RETURN_IF_ERROR(WarnOfUnmatched(*config, loaded->model_, loaded->checkpoint_, context));
  if (config != nullptr) {
    auto online = LoadOnline(*config, loaded->checkpoint_, &loaded->model_, context);
    if (!online.ok()) return in_folder(online.status());
    loaded->online_tensors_ = *std::move(online);
  }

  if (config != nullptr && options.dequantize) {
    OCTAVO_RETURN_IF_ERROR(in_folder(loaded->DequantizeLayers()));
    if (config->kv_cache_scheme || loaded->model_.embedding_layer.quantization.weights) {
      return in_folder(
          Unsupported("the cache or the embedding is quantized already; quantize the original"));
    }
    context.log.Info(
        fmt::format("{}: {} layers are quantized ({}); they are dequantized to {} as "
                    "they are read",
                    folder.string(), loaded->dequantized_layers_, config->quant_method,
                    DTypeName(spec->dtype)));
    loaded->quantization_.reset();
  }

  const std::vector<std::string> unused = loaded->UnusedTensors();
  if (!unused.empty()) {
    context.log.Warning(
        fmt::format("{}: {} tensors belong to no module of {} and are not used: {}",
                    folder.string(), unused.size(), spec->architecture,
                    fmt::join(unused.begin(),
                              unused.begin() + std::min<int64_t>(5, std::ssize(unused)), ", ")));
  }
  OCTAVO_RETURN_IF_ERROR(in_folder(loaded->LoadEnds(context)));
  if (options.load_blocks) {
    for (int64_t i = 0; i < spec->num_layers; ++i) {
      OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
      OCTAVO_RETURN_IF_ERROR(in_folder(loaded->LoadBlock(i, context)));
    }
  }
  return loaded;
}

Status LoadedModel::LoadEnds(const Context& context) {
  OCTAVO_RETURN_IF_ERROR(LoadEmbedding(context));
  OCTAVO_RETURN_IF_ERROR(LoadFinalNorm());
  model_.head.parts.clear();
  model_.head.part_columns.clear();
  // transformers takes a head that is in the file even where the config says that it is tied.
  if (checkpoint_.NamesOf(model_.names.head).empty()) {
    if (!model_.spec.tie_word_embeddings) {
      return NotFound(fmt::format("{}.weight is missing, and tie_word_embeddings is not true",
                                  model_.names.head));
    }
    model_.head_is_embedding = true;
    model_.head.layers.front().quantization = model_.embedding_layer.quantization;
    const std::vector<LayerViews> tensors = {
        CollectTensors(checkpoint_, model_.names.embedding, online_tensors_)};
    return PrepareGroup(&model_.head, tensors, prepare_, context);
  }
  return LoadGroup(&model_.head, context);
}

Status LoadedModel::LoadFinalNorm() {
  OCTAVO_ASSIGN_OR_RETURN(
      model_.final_norm_weight,
      LoadNorm(checkpoint_, model_.spec, model_.names.final_norm, model_.spec.hidden_size));
  return OkStatus();
}

void LoadedModel::ReleaseEnds() {
  model_.embedding = {};
  model_.embedding_table.reset();
  model_.head.parts.clear();
  model_.head.part_columns.clear();
  for (const std::string& module : {model_.names.embedding, model_.names.head}) {
    for (const std::string& name : checkpoint_.NamesOf(module)) checkpoint_.Forget(name);
  }
}

Status LoadedModel::TensorsWereReplaced(const TensorNameSet& online) {
  online_tensors_.insert(online.begin(), online.end());
  ReleaseEnds();
  model_.head_is_embedding = checkpoint_.NamesOf(model_.names.head).empty();
  return LoadFinalNorm();
}

Status LoadedModel::DequantizeLayers() {
  const LinearLayer& head = model_.head.layers.front();
  if (head.quantization.weights && !checkpoint_.NamesOf(head.name).empty())
    return Unsupported(head.name + " is quantized already; quantize the original instead");
  std::vector<LinearGroup*> groups;
  for (Block& block : model_.blocks) {
    for (LinearGroup* group : block.groups()) groups.push_back(group);
  }
  for (LinearGroup* group : groups) {
    for (LinearLayer& layer : group->layers) {
      const LayerViews tensors = CollectTensors(checkpoint_, layer.name, online_tensors_);
      if (!layer.quantization.weights || tensors.empty()) continue;
      OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
      OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, layer, tensors));
      if (!layer.input_transforms.empty() || !layer.output_transforms.empty()) {
        return Unsupported(layer.name +
                           " is rotated and quantized already; quantize the original instead");
      }
      const QuantizationArgs& weights = *layer.quantization.weights;
      if (weights.type != QuantizationType::kFloat || weights.num_bits != 8) {
        return Unsupported(
            fmt::format("{} is quantized already ({}); quantize the original instead: only FP8 is "
                        "dequantized",
                        layer.name, scheme->name));
      }
      std::vector<std::string> replaced;
      for (const auto& [suffix, view] : tensors) {
        if (suffix != "bias") replaced.push_back(layer.name + "." + suffix);
      }
      checkpoint_.Replace(
          replaced, layer.name + ".weight", [scheme, layer, tensors]() -> Result<Tensor> {
            OCTAVO_ASSIGN_OR_RETURN(const Tensor weight, scheme->dequantize(layer, tensors));
            return FromFloat(weight.data<float>(), layer.model_dtype, weight.shape());
          });
      layer.quantization = {};
      ++dequantized_layers_;
    }
  }
  return OkStatus();
}

Status LoadedModel::LoadEmbedding(const Context& context) {
  const LinearLayer& layer = model_.embedding_layer;
  if (layer.quantization.weights) {
    OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
    if (scheme->prepare_table == nullptr) {
      return Unsupported(
          fmt::format("{}: an embedding quantized as {} is not supported, only one of integer "
                      "weights alone is (W4A16, W8A16); quantize the model again without it",
                      layer.name, scheme->name));
    }
    const LayerViews tensors = CollectTensors(checkpoint_, layer.name, online_tensors_);
    OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, layer, tensors));
    OCTAVO_ASSIGN_OR_RETURN(model_.embedding_table, scheme->prepare_table(layer, tensors, context));
    return OkStatus();
  }
  const std::string name = layer.name + ".weight";
  OCTAVO_ASSIGN_OR_RETURN(model_.embedding, checkpoint_.Find(name));
  if (model_.embedding.shape == Shape{layer.n, layer.k}) return OkStatus();
  return InvalidArgument(fmt::format("{}: shape {}, expected [{}, {}] (vocab_size, hidden_size)",
                                     name, ShapeString(model_.embedding.shape), layer.n, layer.k));
}

Status LoadedModel::LoadBlock(int64_t index, const Context& context) {
  Block& block = model_.blocks[static_cast<size_t>(index)];
  if (block.loaded) return OkStatus();
  for (Norm* norm : block.norms()) {
    OCTAVO_ASSIGN_OR_RETURN(norm->weight,
                            LoadNorm(checkpoint_, model_.spec, norm->name, norm->size));
  }
  for (LinearGroup* group : block.groups()) OCTAVO_RETURN_IF_ERROR(LoadGroup(group, context));
  block.loaded = true;
  return OkStatus();
}

void LoadedModel::ReleaseBlock(int64_t index) {
  Block& block = model_.blocks[static_cast<size_t>(index)];
  for (LinearGroup* group : block.groups()) {
    group->parts.clear();
    group->part_columns.clear();
    for (const LinearLayer& layer : group->layers) {
      for (const std::string& name : checkpoint_.NamesOf(layer.name)) checkpoint_.Forget(name);
    }
  }
  for (Norm* norm : block.norms()) norm->weight = Tensor();
  block.loaded = false;
}

Status LoadedModel::LoadGroup(LinearGroup* group, const Context& context) {
  std::vector<LayerViews> tensors;
  tensors.reserve(group->layers.size());
  for (const LinearLayer& layer : group->layers)
    tensors.push_back(CollectTensors(checkpoint_, layer.name, online_tensors_));
  OCTAVO_RETURN_IF_ERROR(PrepareGroup(group, tensors, prepare_, context));
  for (const auto& part : group->parts) {
    context.log.Debug(fmt::format("{}: {}", group->layers.front().name, part->Describe()));
  }
  // Packed weights are a copy; the file's pages need not stay.
  const bool reads_file = std::any_of(group->parts.begin(), group->parts.end(),
                                      [](const auto& part) { return part->reads_file(); });
  if (reads_file) return OkStatus();
  for (const LinearLayer& layer : group->layers) {
    for (const std::string& name : checkpoint_.NamesOf(layer.name)) checkpoint_.Forget(name);
  }
  return OkStatus();
}

LayerViews LoadedModel::TensorsOf(const LinearLayer& layer) const {
  return CollectTensors(checkpoint_, layer.name, online_tensors_);
}

Result<Tensor> LoadedModel::Weight(const LinearLayer& layer) const {
  OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
  return scheme->dequantize(layer, TensorsOf(layer));
}

std::vector<std::string> LoadedModel::UnusedTensors() const {
  std::set<std::string, std::less<>> modules = {model_.names.embedding, model_.names.final_norm};
  const auto add = [&](const LinearGroup& group) {
    for (const LinearLayer& layer : group.layers) modules.insert(layer.name);
  };
  for (const Block& block : model_.blocks) {
    for (const Norm* norm : block.norms()) modules.insert(norm->name);
    for (const LinearGroup* group : block.groups()) add(*group);
  }
  add(model_.head);
  std::vector<std::string> unused;
  for (const std::string& name : checkpoint_.Names()) {
    const bool known = modules.contains(std::string_view(name).substr(0, name.rfind('.')));
    const auto& ignored = model_.names.ignored_suffixes;
    const bool ignorable = std::any_of(ignored.begin(), ignored.end(),
                                       [&](const auto& suffix) { return name.ends_with(suffix); });
    if (!known && !ignorable && !online_tensors_.contains(name)) unused.push_back(name);
  }
  return unused;
}

Status PrepareGroup(LinearGroup* group, std::span<const LayerViews> tensors,
                    const PrepareOptions& options, const Context& context) {
  group->parts.clear();
  group->part_columns.clear();
  int64_t column = 0;
  for (size_t first = 0; first < group->layers.size();) {
    OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(group->layers[first]));
    // A stack ends where the declared quantization or the quantization of the input changes: each
    // layer runs as declared, with the scales it has.
    size_t end = first;
    const auto stacks = [&](size_t i) {
      return i == first ||
             (SameQuantization(group->layers[i].quantization, group->layers[first].quantization) &&
              SameTransforms(group->layers[i], group->layers[first]) &&
              (scheme->stacks == nullptr || scheme->stacks(tensors[first], tensors[i])));
    };
    int64_t columns = 0;
    for (; end < group->layers.size() && stacks(end); ++end) {
      OCTAVO_RETURN_IF_ERROR(CheckDeclared(*scheme, group->layers[end], tensors[end]));
      columns += group->layers[end].n;
    }
    const std::span<const LinearLayer> stack(group->layers.data() + first, end - first);
    OCTAVO_ASSIGN_OR_RETURN(
        auto part, scheme->prepare(stack, tensors.subspan(first, end - first), options, context));
    group->parts.push_back(WithTransforms(std::move(part), stack));
    group->part_columns.push_back(column);
    column += columns;
    first = end;
  }
  return OkStatus();
}

}  // namespace octavo
