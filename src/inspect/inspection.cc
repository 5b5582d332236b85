#include "inspect/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/suggest.h"
#include "model/architecture.h"

namespace octavo {

namespace {

int64_t Bytes(const PlannedTensor& tensor) {
  return Elements(tensor.shape) * DTypeBytes(tensor.dtype);
}

// Lists the modules that the graph has, then gives each its tensors.
class ModuleLister {
 public:
  explicit ModuleLister(Inspection* inspection) : inspection_(*inspection) {}

  void List() {
    const Model& model = *inspection_.model;
    AddLayer(ModuleKind::kEmbedding, model.embedding_layer, "");
    for (Block& block : inspection_.model->blocks) {
      prefix_ = block.name + ".";
      for (const Norm* norm : std::as_const(block).norms()) AddNorm(norm->name, norm->size);
      for (const LinearGroup* group : std::as_const(block).groups()) {
        for (const LinearLayer& layer : group->layers)
          AddLayer(ModuleKind::kLinear, layer, prefix_);
      }
    }
    prefix_.clear();
    AddNorm(model.names.final_norm, model.spec.hidden_size);
    if (!model.head_is_embedding) AddLayer(ModuleKind::kHead, model.head.layers.front(), "");
    for (const PlannedTensor& tensor : inspection_.tensors) AddTensor(tensor);
  }

 private:
  InspectedModule& Add(ModuleKind kind, const std::string& name) {
    index_[name] = inspection_.modules.size();
    InspectedModule& module = inspection_.modules.emplace_back();
    module.kind = kind;
    module.name = name;
    module.role = name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
    return module;
  }

  void AddNorm(const std::string& name, int64_t size) {
    Add(ModuleKind::kNorm, name).shape = {size};
  }

  void AddLayer(ModuleKind kind, const LinearLayer& layer, const std::string& prefix) {
    prefix_ = prefix;
    InspectedModule& module = Add(kind, layer.name);
    module.layer = &layer;
    module.shape = {layer.n, layer.k};
    if (const auto scheme = SelectScheme(layer); scheme.ok()) module.scheme = *scheme;
  }

  void AddTensor(const PlannedTensor& tensor) {
    const bool online = inspection_.online_tensors.contains(tensor.name);
    const std::string name = ModuleOfTensor(tensor.name);
    auto found = index_.find(online ? std::string(kOnlineName) : name);
    if (found == index_.end()) {
      Add(online ? ModuleKind::kOnline : ModuleKind::kUnknown,
          online ? std::string(kOnlineName) : name);
      found = index_.find(online ? std::string(kOnlineName) : name);
    }
    InspectedModule& module = inspection_.modules[found->second];
    module.bytes += Bytes(tensor);
    if (module.layer != nullptr && tensor.name.ends_with(".bias"))
      module.bias_bytes += Bytes(tensor);
  }

  static constexpr std::string_view kOnlineName = "attention scales, transforms";

  Inspection& inspection_;
  std::string prefix_;
  std::map<std::string, size_t, std::less<>> index_;
};

Status OpenModel(const Context& context, Inspection* inspection) {
  const Checkpoint& checkpoint = *inspection->checkpoint;
  OCTAVO_ASSIGN_OR_RETURN(inspection->config, FindQuantizationConfig(checkpoint.config()));
  const QuantizationConfig* config = inspection->config ? &*inspection->config : nullptr;
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(checkpoint.config()));
  auto spec = architecture->parse_config(checkpoint.config());
  if (!spec.ok()) return spec.status().Annotate("config.json");
  OCTAVO_ASSIGN_OR_RETURN(Model model, BuildGraph(*architecture, *spec, config));
  model.head_is_embedding =
      spec->tie_word_embeddings && checkpoint.NamesOf(model.names.head).empty();
  inspection->model = std::make_unique<Model>(std::move(model));
  if (config == nullptr) return OkStatus();
  auto online = LoadOnline(*config, checkpoint, inspection->model.get(), context);
  if (online.ok()) {
    inspection->online_tensors = *std::move(online);
  } else {
    inspection->problems.push_back(
        {.kind = ProblemKind::kUnsupported, .where = "model", .text = online.status().message()});
  }
  return OkStatus();
}

}  // namespace

std::string ModuleOfTensor(std::string_view tensor) {
  const size_t dot = tensor.rfind('.');
  return dot == std::string_view::npos ? "(no module)" : std::string(tensor.substr(0, dot));
}

double InspectedModule::bits_per_weight() const {
  if (layer == nullptr) return 0;
  return 8.0 * static_cast<double>(bytes - bias_bytes) /
         (static_cast<double>(layer->n) * static_cast<double>(layer->k));
}

int64_t Inspection::total_bytes() const {
  int64_t bytes = header_bytes;
  for (const InspectedModule& module : modules) bytes += module.bytes;
  return bytes;
}

Result<const InspectedModule*> Inspection::Find(std::string_view name) const {
  std::vector<std::string> names;
  for (const InspectedModule& module : modules) {
    if (module.layer == nullptr) continue;
    if (module.name == name) return &module;
    names.push_back(module.name);
  }
  return NotFound(fmt::format("the model has no layer {}{}; they are named like {}", name,
                              DidYouMean(name, names), names.back()));
}

Result<Inspection> InspectCheckpoint(const std::filesystem::path& folder, const Context& context) {
  Inspection inspection;
  OCTAVO_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(folder));
  inspection.checkpoint = std::make_unique<Checkpoint>(std::move(checkpoint));
  OCTAVO_RETURN_IF_ERROR(OpenModel(context, &inspection).Annotate(folder.string()));
  for (const std::string& name : inspection.checkpoint->Names()) {
    const TensorView view = inspection.checkpoint->Find(name).value();
    inspection.tensors.push_back({name, view.dtype, view.shape});
  }
  for (const SafetensorsFile& file : inspection.checkpoint->files())
    inspection.header_bytes += std::ssize(file.file()->bytes());
  inspection.header_bytes -= inspection.checkpoint->total_bytes();
  ModuleLister(&inspection).List();
  std::vector<Problem> found = Diagnose(inspection);
  std::move(found.begin(), found.end(), std::back_inserter(inspection.problems));
  return inspection;
}

Inspection InspectPlan(Model model, QuantizationConfig config, std::vector<PlannedTensor> tensors,
                       TensorNameSet online_tensors) {
  Inspection inspection;
  inspection.model = std::make_unique<Model>(std::move(model));
  inspection.config = std::move(config);
  inspection.tensors = std::move(tensors);
  inspection.online_tensors = std::move(online_tensors);
  TensorNameSet attention;
  for (const Block& block : inspection.model->blocks) attention.insert(block.attention);
  for (const PlannedTensor& tensor : inspection.tensors) {
    if (attention.contains(ModuleOfTensor(tensor.name)))
      inspection.online_tensors.insert(tensor.name);
  }
  ModuleLister(&inspection).List();
  return inspection;
}

}  // namespace octavo
