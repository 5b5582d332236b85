#include "inspect/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "inspect/inspection.h"

namespace octavo {

namespace {

std::string_view KindName(ProblemKind kind) {
  constexpr std::string_view kNames[] = {"missing",     "surplus", "shape", "dtype",
                                         "unsupported", "pattern", "fused", "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

std::string DTypeNames(const std::vector<DType>& dtypes) {
  std::vector<std::string_view> names;
  for (DType dtype : dtypes) names.push_back(DTypeName(dtype));
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string ShapeStrings(const std::vector<Shape>& shapes) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes) names.push_back(ShapeString(shape));
  return shapes.empty() ? "none that fits" : fmt::format("{}", fmt::join(names, " or "));
}

class Doctor {
 public:
  explicit Doctor(const Inspection& inspection) : inspection_(inspection) {
    for (const PlannedTensor& tensor : inspection.tensors) {
      if (inspection.online_tensors.contains(tensor.name)) continue;
      tensors_[ModuleOfTensor(tensor.name)].push_back(&tensor);
    }
  }

  std::vector<Problem> Examine() {
    for (const InspectedModule& module : inspection_.modules) {
      if (module.layer != nullptr) {
        ExamineLayer(module);
      } else if (module.kind == ModuleKind::kNorm) {
        ExamineNorm(module);
      } else if (module.kind == ModuleKind::kUnknown) {
        ExamineUnknown(module);
      }
    }
    ExamineGroups();
    if (inspection_.config) ExaminePatterns(*inspection_.config);
    return std::move(problems_);
  }

 private:
  void Add(ProblemKind kind, std::string where, std::string text) {
    problems_.push_back({kind, std::move(where), std::move(text)});
  }

  const std::vector<const PlannedTensor*>& TensorsOf(const std::string& module) const {
    static const std::vector<const PlannedTensor*> kNone;
    const auto found = tensors_.find(module);
    return found == tensors_.end() ? kNone : found->second;
  }

  const PlannedTensor* Find(const std::string& module, const std::string& suffix) const {
    for (const PlannedTensor* tensor : TensorsOf(module)) {
      if (tensor->name.size() == module.size() + 1 + suffix.size() &&
          tensor->name.ends_with(suffix))
        return tensor;
    }
    return nullptr;
  }

  void ExamineTensor(const std::string& module, const DeclaredTensor& declared,
                     std::string_view needed_by) {
    const std::string name = module + "." + declared.suffix;
    const PlannedTensor* found = Find(module, declared.suffix);
    if (found == nullptr) {
      if (declared.optional) return;
      return Add(ProblemKind::kMissing, name,
                 fmt::format("{} needs it as {} {}", needed_by, DTypeNames(declared.dtypes),
                             ShapeStrings(declared.shapes)));
    }
    if (std::find(declared.shapes.begin(), declared.shapes.end(), found->shape) ==
        declared.shapes.end()) {
      Add(ProblemKind::kShape, name,
          fmt::format("shape {}, expected {}", ShapeString(found->shape),
                      ShapeStrings(declared.shapes)));
    }
    if (std::find(declared.dtypes.begin(), declared.dtypes.end(), found->dtype) ==
        declared.dtypes.end()) {
      Add(ProblemKind::kDType, name,
          fmt::format("{}, expected {}", DTypeName(found->dtype), DTypeNames(declared.dtypes)));
    }
  }

  void ExamineSurplus(const std::string& module, const std::vector<DeclaredTensor>& declared,
                      std::string_view used_by) {
    for (const PlannedTensor* tensor : TensorsOf(module)) {
      const std::string_view suffix = std::string_view(tensor->name).substr(module.size() + 1);
      if (std::any_of(declared.begin(), declared.end(),
                      [&](const DeclaredTensor& one) { return one.suffix == suffix; }))
        continue;
      if (!IsIgnored(tensor->name))
        Add(ProblemKind::kSurplus, tensor->name,
            fmt::format("{} {}, which {} does not use", DTypeName(tensor->dtype),
                        ShapeString(tensor->shape), used_by));
    }
  }

  void ExamineLayer(const InspectedModule& module) {
    if (module.scheme == nullptr) {
      return Add(ProblemKind::kUnsupported, module.name,
                 SelectScheme(*module.layer).status().message());
    }
    if (module.kind == ModuleKind::kEmbedding && module.layer->quantization.weights &&
        module.scheme->prepare_table == nullptr) {
      Add(ProblemKind::kUnsupported, module.name,
          fmt::format("an embedding of scheme {} cannot be looked up", module.scheme->name));
    }
    const std::vector<DeclaredTensor> declared = module.scheme->declare(*module.layer);
    const std::string user = fmt::format("{}", module.scheme->name);
    for (const DeclaredTensor& tensor : declared) ExamineTensor(module.name, tensor, user);
    ExamineSurplus(module.name, declared, user);
  }

  void ExamineNorm(const InspectedModule& module) {
    const DeclaredTensor weight = {.suffix = "weight",
                                   .dtypes = {DType::kBF16, DType::kF16, DType::kF32},
                                   .shapes = {module.shape}};
    ExamineTensor(module.name, weight, "a norm");
    ExamineSurplus(module.name, {weight}, "a norm");
  }

  bool IsIgnored(const std::string& name) const {
    const auto& ignored = inspection_.model->names.ignored_suffixes;
    return std::any_of(ignored.begin(), ignored.end(),
                       [&](const std::string& suffix) { return name.ends_with(suffix); });
  }

  void ExamineUnknown(const InspectedModule& module) {
    for (const PlannedTensor* tensor : TensorsOf(module.name)) {
      if (IsIgnored(tensor->name)) continue;
      Add(ProblemKind::kUnknown, tensor->name,
          fmt::format("{} {}: belongs to no module of {}, and is not used",
                      DTypeName(tensor->dtype), ShapeString(tensor->shape),
                      inspection_.model->spec.architecture));
    }
  }

  void ExamineGroups() {
    for (const Block& block : inspection_.model->blocks) {
      for (const LinearGroup* group : block.groups()) {
        const LinearLayer& first = group->layers.front();
        for (const LinearLayer& layer : group->layers) {
          if (SameQuantization(layer.quantization, first.quantization)) continue;
          Add(ProblemKind::kFused, layer.name,
              fmt::format("declared otherwise than {}, with which engines run it as one layer ({}; "
                          "{})",
                          first.name, SchemeString(layer.quantization),
                          SchemeString(first.quantization)));
        }
      }
    }
  }

  void ExaminePatterns(const QuantizationConfig& config) {
    std::vector<ModuleName> modules = inspection_.model->modules();
    const std::vector<ModuleName> attention = inspection_.model->attention_modules();
    modules.insert(modules.end(), attention.begin(), attention.end());
    const auto unmatched = FindUnmatchedPatterns(config, modules);
    if (!unmatched.ok())
      return Add(ProblemKind::kUnsupported, "config", unmatched.status().message());
    for (const std::string& pattern : unmatched->targets)
      Add(ProblemKind::kPattern, pattern, "a target that matches no layer");
    for (const std::string& pattern : unmatched->ignore) {
      // Modules that are not known here, but are in the file, are ignored rightly.
      if (!tensors_.contains(pattern))
        Add(ProblemKind::kPattern, pattern, "an ignore entry that matches no layer");
    }
  }

  const Inspection& inspection_;
  std::map<std::string, std::vector<const PlannedTensor*>, std::less<>> tensors_;  // by module
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> Diagnose(const Inspection& inspection) {
  return Doctor(inspection).Examine();
}

Table ProblemTable(const std::vector<Problem>& problems) {
  Table table = {.key = "problems",
                 .title = "Problems",
                 .columns = {{"severity", "severity"},
                             {"kind", "kind"},
                             {"where", "where"},
                             {"what", "found"}},
                 .rows = {}};
  for (const Problem& problem : problems) {
    table.rows.push_back({problem.is_error() ? "error" : "warning", KindName(problem.kind),
                          problem.where, problem.text});
  }
  return table;
}

}  // namespace octavo
