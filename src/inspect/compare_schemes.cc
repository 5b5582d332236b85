#include "inspect/compare_schemes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "inspect/engine.h"
#include "inspect/layer_table.h"
#include "quant/scale_grid.h"

namespace octavo {

namespace {

// The linear layers of the blocks, which presets are compared on.
std::vector<const LinearLayer*> LayersOf(const Inspection& inspection) {
  std::vector<const LinearLayer*> layers;
  for (const InspectedModule& module : inspection.modules) {
    if (module.kind == ModuleKind::kLinear) layers.push_back(module.layer);
  }
  return layers;
}

// The largest group that divides every k, no larger than the preset's; blocks and groups of a fixed
// size stay.
void FitGroups(const std::vector<const LinearLayer*>& layers, QuantizationArgs* weights) {
  constexpr int64_t kSmallest = 16;
  if (weights->type != QuantizationType::kInt || weights->strategy != Strategy::kGroup) return;
  int64_t& group = *weights->group_size;
  const auto divides = [&](const LinearLayer* layer) { return layer->k % group == 0; };
  while (group > kSmallest && !std::all_of(layers.begin(), layers.end(), divides)) group /= 2;
}

// What keeps the weights from being cut into groups; empty where nothing does.
std::string WhyItDoesNotFit(const std::vector<const LinearLayer*>& layers,
                            const QuantizationArgs& weights) {
  for (const LinearLayer* layer : layers) {
    const auto grid = MakeScaleGrid(weights, layer->n, layer->k);
    if (!grid.ok()) return fmt::format("{}: {}", layer->name, grid.status().message());
  }
  return "";
}

struct Sizes {
  int64_t bytes = 0;  // of the whole model
  double bits_per_weight = 0;
};

// The layers as `scheme` stores them, everything else as it is. `declared` is what the scheme was
// selected for.
Sizes SizesAs(const Inspection& inspection, const QuantizationScheme& declared,
              const Scheme& scheme) {
  Sizes sizes;
  double weights = 0;
  int64_t without_bias = 0;
  for (const InspectedModule& module : inspection.modules) {
    if (module.kind != ModuleKind::kLinear) {
      sizes.bytes += module.bytes;
      continue;
    }
    LinearLayer layer = *module.layer;
    layer.quantization = declared;
    weights += static_cast<double>(layer.n) * static_cast<double>(layer.k);
    for (const DeclaredTensor& tensor : scheme.declare(layer)) {
      if (tensor.optional) continue;
      const int64_t bytes = Elements(tensor.shapes.front()) * DTypeBytes(tensor.dtypes.front());
      sizes.bytes += bytes;
      if (tensor.suffix != "bias") without_bias += bytes;
    }
  }
  sizes.bits_per_weight = 8 * static_cast<double>(without_bias) / weights;
  return sizes;
}

std::vector<Subject> SubjectsAs(const Inspection& inspection, const QuantizationScheme& declared) {
  std::vector<Subject> subjects;
  for (Subject& subject : SubjectsOf(inspection)) {
    if (subject.kind != ModuleKind::kLinear) continue;
    subject.declared = &declared;
    subject.is_ignored = true;  // where it is not quantized
    subject.is_torn = subject.is_partly_ignored = subject.is_foreign = false;
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

// "SM75-90, CPU AVX2" of the machines that `wanted` holds for; neighbours in the list, which begins
// with GPUs, become a range.
std::string MachinesText(const std::function<bool(size_t)>& wanted) {
  const std::span<const Machine> machines = AllMachines();
  std::vector<std::string> parts;
  for (size_t i = 0; i < machines.size(); ++i) {
    if (!wanted(i)) continue;
    size_t last = i;
    while (last + 1 < machines.size() && wanted(last + 1) &&
           machines[last + 1].is_cpu() == machines[i].is_cpu())
      ++last;
    if (machines[i].is_cpu()) {
      const bool is_first = !machines[i - 1].is_cpu();
      parts.push_back(is_first && last + 1 == machines.size()
                          ? "CPU"
                          : std::string(machines[i].name) + (last > i ? " and up" : ""));
    } else {
      parts.push_back(
          last == i ? fmt::format("SM{}", machines[i].capability)
                    : fmt::format("SM{}-{}", machines[i].capability, machines[last].capability));
    }
    i = last;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Where an engine runs the subjects, natively and by fallback.
Cell MachinesCell(const Engine& engine, const std::vector<Subject>& subjects) {
  std::vector<Outcome> outcomes;
  for (const Machine& machine : AllMachines()) {
    const bool possible = machine.is_cpu() || engine.has_gpu_kernels;
    outcomes.push_back(possible ? JudgeAll(engine, machine, subjects, {}).outcome
                                : Outcome::kRefused);
  }
  Value value = Value::MakeObject();
  std::string text;
  for (const Outcome outcome : {Outcome::kNative, Outcome::kFallback}) {
    std::vector<std::string> names;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (outcomes[i] == outcome) names.emplace_back(AllMachines()[i].name);
    }
    value.Set(OutcomeName(outcome), Cell::List(names, ", ").value);
    if (names.empty()) continue;
    if (!text.empty()) text += "; ";
    if (outcome == Outcome::kFallback) text += "fallback ";
    text += MachinesText([&](size_t i) { return outcomes[i] == outcome; });
  }
  return {std::move(value), text.empty() ? "-" : text};
}

}  // namespace

Result<Table> CompareSchemesTable(const Inspection& inspection, const MeasureScheme& measure) {
  Table table = {.key = "schemes",
                 .title = "Presets, for this model",
                 .columns = {{"preset", "preset"},
                             {"declared", "declared"},
                             {"bytes", "size", true},
                             {"share", "of dense", true},
                             {"bits_per_weight", "bits/weight", true},
                             {"octavo", "octavo"}},
                 .rows = {}};
  if (measure) {
    table.columns.push_back({"perplexity", "perplexity", true});
    table.columns.push_back({"kl", "KL", true});
    table.columns.push_back({"same_top1", "same top token", true});
  }
  for (const Engine* engine : AllEngines()) {
    if (engine->has_gpu_kernels)
      table.columns.push_back({std::string(engine->name), std::string(engine->name)});
  }
  const std::vector<const LinearLayer*> layers = LayersOf(inspection);
  std::map<std::string, std::vector<std::string>> misfits;  // reason -> presets
  int64_t dense_bytes = 0;
  for (const std::string& name : PresetNames()) {
    QuantizationScheme declared = PresetScheme(name, {"Linear"}).value();
    if (declared.weights && PresetNameOf(declared) != name) continue;  // another one's second name
    declared.format = InferFormat(declared);
    if (declared.weights) {
      FitGroups(layers, &*declared.weights);
      if (std::string reason = WhyItDoesNotFit(layers, *declared.weights); !reason.empty()) {
        misfits[reason].push_back(name);
        continue;
      }
    }
    LinearLayer example = *layers.front();
    example.quantization = declared;
    const auto scheme = SelectScheme(example);
    if (!scheme.ok()) {
      table.notes.push_back(fmt::format("{}: {}", name, scheme.status().message()));
      continue;
    }
    const Sizes sizes = SizesAs(inspection, declared, **scheme);
    if (dense_bytes == 0) dense_bytes = sizes.bytes;
    const bool is_made = (*scheme)->pack != nullptr || !declared.weights;
    std::vector<Cell> row = {
        name,
        DeclaredText(declared),
        BytesCell(sizes.bytes),
        ShareCell(static_cast<double>(sizes.bytes) / static_cast<double>(dense_bytes)),
        NumberCell(sizes.bits_per_weight, 2),
        is_made ? "makes, runs" : "runs"};
    if (measure) {
      auto loss = measure(declared);
      if (!loss.ok()) return loss.status().Annotate(name);
      row.push_back(NumberCell(loss->perplexity, 3));
      row.push_back(NumberCell(loss->kl, 4));
      row.push_back(ShareCell(loss->same_top1));
    }
    const std::vector<Subject> subjects = SubjectsAs(inspection, declared);
    for (const Engine* engine : AllEngines()) {
      if (engine->has_gpu_kernels) row.push_back(MachinesCell(*engine, subjects));
    }
    table.rows.push_back(std::move(row));
  }
  for (const auto& [reason, names] : misfits)
    table.notes.push_back(fmt::format("Do not fit: {}: {}", fmt::join(names, ", "), reason));
  table.notes.emplace_back(
      "Every linear layer but the head; what the others take is counted as it is.");
  table.notes.emplace_back(
      measure ? "Perplexity, KL divergence to the original and equal choices on the head of the "
                "text, every weight rounded to nearest: GPTQ, AWQ and SmoothQuant lose less."
              : "What a preset costs in accuracy depends on model and data: --text measures it.");
  return table;
}

}  // namespace octavo
