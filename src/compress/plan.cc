#include "compress/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "compress/attention_scales.h"
#include "compress/rotate_model.h"
#include "compress/static_inputs.h"
#include "compress/static_outputs.h"
#include "model/architecture.h"
#include "quant/observers/observer.h"
#include "quant/scheme.h"

namespace octavo {

namespace {

constexpr std::string_view kWeightSuffix = ".weight";

// "model.vision.blocks.*.fc1.weight (24)": the tensors' names, those that differ only in numbers
// together.
std::string SummarizeNames(const std::set<std::string>& names) {
  std::map<std::string, int64_t> patterns;
  for (const std::string& name : names) {
    std::string pattern;
    for (size_t i = 0; i < name.size(); ++i) {
      const bool starts_part = i == 0 || name[i - 1] == '.';
      const size_t end = std::min(name.find('.', i), name.size());
      const bool is_number =
          starts_part && end > i &&
          std::all_of(name.begin() + static_cast<std::ptrdiff_t>(i),
                      name.begin() + static_cast<std::ptrdiff_t>(end),
                      [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; });
      pattern += is_number ? '*' : name[i];
      if (is_number) i = end - 1;
    }
    ++patterns[pattern];
  }
  std::vector<std::string> lines;
  lines.reserve(patterns.size());
  for (const auto& [pattern, count] : patterns) {
    lines.push_back(count == 1 ? pattern : fmt::format("{} ({})", pattern, count));
  }
  return fmt::format("{}", fmt::join(lines, ", "));
}

// Modules of unknown tensors that engines would take for linear layers.
Result<std::vector<std::string>> UnknownLinears(const Checkpoint& checkpoint,
                                                const std::set<std::string>& unknown) {
  std::vector<std::string> modules;
  for (const std::string& name : unknown) {
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(name));
    if (!LooksLikeLinear(name, view.shape)) continue;
    modules.push_back(name.substr(0, name.size() - kWeightSuffix.size()));
  }
  return modules;
}

// quantization_config as the library saves it (checkpoint-format 1.3, 5.3): one group for each
// distinct scheme in the order in which modules first use them, and in `ignore` every module that
// is not quantized, by name, of the classes of which one is.
class ConfigMaker {
 public:
  // `scheme`: null where the module is not quantized.
  void Add(std::string_view class_name, const std::string& module,
           const QuantizationScheme* scheme) {
    if (scheme == nullptr) {
      left_out_.emplace_back(class_name, module);
      return;
    }
    classes_.insert(class_name);
    auto& groups = config_.config_groups;
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& entry) { return entry.second == *scheme; });
    if (known == groups.end()) groups.emplace_back(fmt::format("group_{}", groups.size()), *scheme);
  }

  QuantizationConfig Finish() {
    for (const auto& [class_name, module] : left_out_) {
      if (classes_.contains(class_name)) config_.ignore.push_back(module);
    }
    return std::move(config_);
  }

 private:
  QuantizationConfig config_;
  std::set<std::string_view> classes_;
  std::vector<std::pair<std::string_view, std::string>> left_out_;
};

QuantizationConfig MakeConfig(const Model& target,
                              const std::vector<std::string>& unknown_linears) {
  ConfigMaker maker;
  const auto add = [&](const LinearLayer& layer, std::string_view class_name) {
    maker.Add(class_name, layer.name, layer.quantization.weights ? &layer.quantization : nullptr);
  };
  add(target.embedding_layer, "Embedding");
  for (const Block& block : target.blocks) {
    maker.Add(target.attention_class, block.attention,
              block.query_quantization ? &*block.query_quantization : nullptr);
    for (const LinearGroup* group : block.groups()) {
      for (const LinearLayer& layer : group->layers) add(layer, "Linear");
    }
  }
  for (const LinearLayer& layer : target.head.layers) add(layer, "Linear");
  for (const std::string& module : unknown_linears) maker.Add("Linear", module, nullptr);
  QuantizationConfig config = maker.Finish();
  config.kv_cache_scheme = target.blocks.front().cache_quantization;
  config.format = CheckpointFormat(config);
  config.quantization_status = "compressed";
  config.version = kFormatVersion;
  return config;
}

// What the layer's scheme declares, in the first dtype and shape of each; biases are copied.
Status PlanLayer(const LinearLayer& layer, std::vector<PlannedTensor>* tensors) {
  OCTAVO_ASSIGN_OR_RETURN(const Scheme* scheme, SelectScheme(layer));
  for (const DeclaredTensor& declared : scheme->declare(layer)) {
    if (declared.suffix == "bias" || declared.optional) continue;
    tensors->push_back(
        {layer.name + "." + declared.suffix, declared.dtypes.front(), declared.shapes.front()});
  }
  return OkStatus();
}

// The source's tensors in their order, a quantized weight replaced by what its scheme declares;
// scales of attention; and the head's, where it had none of its own.
Result<std::vector<PlannedTensor>> PlanTensors(const Checkpoint& checkpoint,
                                               QuantizationPlan* plan) {
  std::map<std::string, const LinearLayer*> quantized;  // by the name of the weight
  for (LinearGroup* group : AllGroups(&plan->target)) {
    for (const LinearLayer& layer : group->layers) {
      if (layer.quantization.weights) quantized[layer.name + ".weight"] = &layer;
    }
  }
  const LinearLayer& embedding = plan->target.embedding_layer;
  if (plan->quantizes_embedding()) quantized[embedding.name + ".weight"] = &embedding;
  std::vector<PlannedTensor> tensors;
  for (const std::string& name : checkpoint.Names()) {
    if (const auto found = quantized.find(name); found != quantized.end()) {
      OCTAVO_RETURN_IF_ERROR(PlanLayer(*found->second, &tensors));
      continue;
    }
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(name));
    tensors.push_back({name, view.dtype, view.shape});
    checkpoint.Forget(name);
  }
  for (const Block& block : plan->target.blocks) {
    for (const DeclaredTensor& declared : DeclareAttentionScales(block, plan->target.spec)) {
      tensors.push_back({block.attention + "." + declared.suffix, declared.dtypes.front(),
                         declared.shapes.front()});
    }
  }
  if (plan->unties_head && plan->quantizes_head()) {
    OCTAVO_RETURN_IF_ERROR(PlanLayer(plan->target.head.layers.front(), &tensors));
  } else if (plan->unties_head) {
    OCTAVO_ASSIGN_OR_RETURN(const TensorView view, checkpoint.Find(embedding.name + ".weight"));
    tensors.push_back({plan->target.names.head + ".weight", view.dtype, view.shape});
  }
  return tensors;
}

// Tensors that no module of the graph has are copied, and named.
Result<std::vector<std::string>> PlanUnknown(const LoadedModel& source, QuantizationPlan* plan,
                                             Logger& log) {
  const std::vector<std::string> unused = source.UnusedTensors();
  plan->unknown_tensors = {unused.begin(), unused.end()};
  if (unused.empty()) return std::vector<std::string>();
  OCTAVO_ASSIGN_OR_RETURN(auto linears, UnknownLinears(source.checkpoint(), plan->unknown_tensors));
  log.Info(
      fmt::format("{} tensors belong to no module that is known here and are copied as they "
                  "are ({} like linear layers, and so listed in `ignore`): {}",
                  unused.size(), linears.size(), SummarizeNames(plan->unknown_tensors)));
  return linears;
}

// What must be known of the inputs, and who asks.
void AddNeeds(const Recipe& recipe, QuantizationPlan* plan) {
  for (const auto& modifier : recipe.modifiers) {
    if (!modifier->needs().any()) continue;
    plan->needs |= modifier->needs();
    plan->needed_by.emplace_back(modifier->class_name());
  }
  StatisticsNeeds inputs;
  StatisticsNeeds outputs;
  StatisticsNeeds importance;
  for (const LinearGroup* group : AllGroups(&plan->target)) {
    for (const LinearLayer& layer : group->layers) {
      inputs |= StaticInputNeeds(layer.quantization);
      outputs |= StaticOutputNeeds(layer.quantization);
      const auto& weights = layer.quantization.weights;
      if (!weights) continue;
      const Result<const WeightObserver*> observer = FindWeightObserver(*weights);
      importance.mean_square |= observer.ok() && (*observer)->wants_importance;
    }
  }
  if (plan->quantizes_attention()) plan->needed_by.emplace_back("static scales of keys and values");
  if (inputs.any()) plan->needed_by.emplace_back("static scales of inputs");
  if (outputs.any()) plan->needed_by.emplace_back("static scales of outputs");
  if (importance.any()) plan->needed_by.emplace_back("an observer that weighs errors by inputs");
  plan->needs |= inputs;
  plan->needs |= outputs;
  plan->needs |= importance;
}

// Whether a tied head would get the codes of the embedding: those of one scheme, from the weight
// alone.
bool SameCodesAsEmbedding(const QuantizationPlan& plan) {
  const LinearLayer& head = plan.target.head.layers.front();
  if (!plan.quantizes_embedding() || head.quantization != plan.target.embedding_layer.quantization)
    return false;
  const Result<const WeightObserver*> observer = FindWeightObserver(*head.quantization.weights);
  return !plan.owners.at(head.name)->needs().any() && observer.ok() &&
         !(*observer)->wants_importance;
}

}  // namespace

std::string QuantizationPlan::SourceOf(const std::string& tensor) const {
  const bool was_embedding = unties_head && tensor == target.names.head + ".weight";
  return was_embedding ? target.names.embedding + ".weight" : tensor;
}

Result<QuantizationPlan> MakePlan(LoadedModel* source, const Recipe& recipe,
                                  const Context& context) {
  Logger& log = context.log;
  if (source->quantization()) {
    return Unsupported(source->checkpoint().folder().string() +
                       ": the model is quantized already; quantize the original instead");
  }
  QuantizationPlan plan;
  OCTAVO_ASSIGN_OR_RETURN(const Architecture* architecture,
                          FindArchitecture(source->checkpoint().config()));
  OCTAVO_ASSIGN_OR_RETURN(plan.target, BuildGraph(*architecture, source->model().spec, nullptr));
  OCTAVO_ASSIGN_OR_RETURN(plan.owners, ResolveRecipe(recipe, &plan.target, log));
  OCTAVO_RETURN_IF_ERROR(RotateModel(recipe, source, &plan, context));
  for (const auto& modifier : recipe.modifiers) {
    OCTAVO_RETURN_IF_ERROR(modifier->Check(plan.target, log).Annotate(modifier->class_name()));
  }
  if (source->model().head_is_embedding) {
    plan.keeps_tie = SameCodesAsEmbedding(plan);
    plan.unties_head = plan.quantizes_head() || (plan.quantizes_embedding() && !plan.keeps_tie);
  }
  OCTAVO_ASSIGN_OR_RETURN(const auto unknown_linears, PlanUnknown(*source, &plan, log));
  plan.config = MakeConfig(plan.target, unknown_linears);
  if (plan.rotates()) plan.config.transform_config = plan.transform_config;
  AddNeeds(recipe, &plan);
  OCTAVO_ASSIGN_OR_RETURN(plan.tensors, PlanTensors(source->checkpoint(), &plan));
  return plan;
}

}  // namespace octavo
