#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "apps/command.h"
#include "apps/scheme_losses.h"
#include "base/file.h"
#include "base/json.h"
#include "compress/calibration_data.h"
#include "compress/estimate.h"
#include "compress/plan.h"
#include "compress/recipe.h"
#include "inspect/cache_table.h"
#include "inspect/compare_schemes.h"
#include "inspect/fused_scales.h"
#include "inspect/inspection.h"
#include "inspect/layer_table.h"
#include "inspect/target_table.h"
#include "model/architecture.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string recipe;
  std::string calibration;
  std::string why;
  std::string text;
  bool compare_schemes = false;
  bool layers = false;
  bool architectures = false;
  bool json = false;
};

Table ArchitecturesTable() {
  Table table{.key = "architectures",
              .title = "Architectures that are known (\"architectures\" of config.json)",
              .columns = {{"class", "class"}, {"block", "what is not as in Llama's block"}},
              .rows = {}};
  for (const Architecture* architecture : Architectures()) {
    for (const std::string& name : architecture->class_names)
      table.rows.push_back({name, architecture->summary});
  }
  return table;
}

Result<Table> CompareSchemes(const Options& options, const Inspection& inspection,
                             const Context& context) {
  if (options.text.empty()) return CompareSchemesTable(inspection);
  OCTAVO_ASSIGN_OR_RETURN(const auto losses,
                          SchemeLosses::Open(options.model, options.text, context));
  return CompareSchemesTable(inspection, [&](const QuantizationScheme& declared) {
    return losses->Measure(declared, context);
  });
}

Result<std::vector<Table>> MakeTables(const Options& options, const Inspection& inspection,
                                      const Context& context) {
  if (!options.why.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(const InspectedModule* module, inspection.Find(options.why));
    std::vector<Table> tables = {WhyTable(*module)};
    if (!inspection.config) return tables;
    const Subject subject = SubjectWith(inspection, *module->layer);
    std::vector<Table> decisions = DecisionTables(subject);
    std::move(decisions.begin(), decisions.end(), std::back_inserter(tables));
    std::vector<Table> targets = TargetTables({&subject, 1}, {});
    std::move(targets.begin(), targets.end(), std::back_inserter(tables));
    return tables;
  }
  if (options.compare_schemes) {
    OCTAVO_ASSIGN_OR_RETURN(Table table, CompareSchemes(options, inspection, context));
    return std::vector<Table>{std::move(table)};
  }
  std::vector<Table> tables = {SummaryTable(inspection)};
  if (options.layers) tables.push_back(LayersTable(inspection));
  if (Table cache = CacheTable(inspection); !cache.rows.empty()) tables.push_back(std::move(cache));
  if (!inspection.problems.empty()) tables.push_back(ProblemTable(inspection.problems));
  if (!inspection.config) return tables;
  OCTAVO_ASSIGN_OR_RETURN(auto losses, FindFusedScaleLosses(inspection, context));
  if (!losses.empty()) tables.push_back(FusedScaleTable(losses));
  const std::vector<Subject> subjects = SubjectsOf(inspection);
  std::vector<Table> targets = TargetTables(subjects, FactsOf(inspection, std::move(losses)));
  std::move(targets.begin(), targets.end(), std::back_inserter(tables));
  return tables;
}

// ---- before quantizing -------------------------------------------------------------------------

// The samples, or as many tokens as there would be at most, where a recipe needs some and no file
// was named.
Result<Dataset> CalibrationOf(const QuantizeOptions& options, const QuantizationPlan& plan) {
  if (!plan.needs_data() || !options.calibration.empty()) return ReadCalibration(options, plan);
  Dataset assumed;
  assumed.tokens = options.dataset.num_samples * options.dataset.max_length;
  return assumed;
}

Table EstimateTable(const Estimate& estimate, const Dataset& dataset) {
  const int64_t mib = estimate.memory_bytes >> 20;
  return {
      .key = "estimate",
      .title = "What quantize will take, about",
      .columns = {{"seconds", "time", true},
                  {"memory_bytes", "memory", true},
                  {"output_bytes", "output", true},
                  {"work_bytes", "disk beside it", true},
                  {"tokens", "calibration tokens", true}},
      .rows = {{Cell(estimate.seconds, fmt::format("{:.0f} s", estimate.seconds)),
                Cell(estimate.memory_bytes, fmt::format("{} MiB", mib)),
                BytesCell(estimate.output_bytes), BytesCell(estimate.work_bytes), dataset.tokens}}};
}

struct Planned {
  Inspection inspection;
  Table estimate;
};

// What quantize would make of the model, and what that would take.
Result<Planned> InspectRecipe(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.recipe, int64_t{16} << 20));
  OCTAVO_ASSIGN_OR_RETURN(const Recipe recipe, ParseRecipe(text, options.recipe, context.log));
  OCTAVO_ASSIGN_OR_RETURN(const auto source,
                          LoadModel(options.model, {.prepare = {}, .load_blocks = false}, context));
  OCTAVO_ASSIGN_OR_RETURN(QuantizationPlan plan, MakePlan(source.get(), recipe, context));
  QuantizeOptions quantize;
  quantize.model = options.model;
  quantize.calibration = options.calibration;
  OCTAVO_ASSIGN_OR_RETURN(const Dataset dataset, CalibrationOf(quantize, plan));
  int64_t bytes = 0;
  for (const PlannedTensor& tensor : plan.tensors)
    bytes += Elements(tensor.shape) * DTypeBytes(tensor.dtype);
  OCTAVO_ASSIGN_OR_RETURN(const Estimate estimate,
                          EstimateQuantization(quantize, plan, dataset, bytes, context));
  plan.target.head_is_embedding = source->model().head_is_embedding && !plan.unties_head;
  return Planned{InspectPlan(std::move(plan.target), std::move(plan.config),
                             std::move(plan.tensors), std::move(plan.online_tensors)),
                 EstimateTable(estimate, dataset)};
}

// ---- the command -------------------------------------------------------------------------------

void PrintTables(const std::vector<Table>& tables, bool json) {
  if (json) return Print(WriteJson(TablesJson(tables), {.indent = 2}) + "\n");
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + TableText(table);
  Print(text);
}

// Whether the checkpoint would load; what keeps it from that was printed.
Status WhetherItLoads(const std::string& model, const Inspection& inspection) {
  const auto errors = std::count_if(inspection.problems.begin(), inspection.problems.end(),
                                    [](const Problem& problem) { return problem.is_error(); });
  if (errors == 0) return OkStatus();
  return InvalidArgument(fmt::format("{}: {} {} from being loaded (octavo inspect lists all)",
                                     model, errors,
                                     errors == 1 ? "problem keeps it" : "problems keep it"));
}

Status Run(const Options& options, const Context& context) {
  if (options.architectures) {
    PrintTables({ArchitecturesTable()}, options.json);
    return OkStatus();
  }
  if (options.model.empty()) return InvalidArgument("a checkpoint folder is needed");
  if (!options.recipe.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(const Planned planned, InspectRecipe(options, context));
    OCTAVO_ASSIGN_OR_RETURN(std::vector<Table> tables,
                            MakeTables(options, planned.inspection, context));
    tables.push_back(planned.estimate);
    PrintTables(tables, options.json);
    return OkStatus();
  }
  OCTAVO_ASSIGN_OR_RETURN(const Inspection inspection, InspectCheckpoint(options.model, context));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Table> tables,
                          MakeTables(options, inspection, context));
  PrintTables(tables, options.json);
  return WhetherItLoads(options.model, inspection);
}

CommandBody Add(CLI::App& app) {
  app.description(
      "What a checkpoint holds, why each layer runs as it does, what is wrong with it, and which "
      "engines run it where");
  app.footer(
      "Examples:\n"
      "  octavo inspect model-w8a8                                       (any checkpoint, "
      "quantized "
      "or not)\n"
      "  octavo inspect model-w8a8 --why model.layers.0.mlp.down_proj    (each scheme, and why "
      "not)\n"
      "  octavo inspect model --recipe recipe.yaml                       (before quantizing: a dry "
      "run)\n"
      "  octavo inspect model --compare-schemes                          (which preset? sizes and "
      "hardware)\n\n"
      "The first table has a row for each scheme and shape; its sizes add up to the files'. "
      "bits/weight counts scales\nand zero points, not biases.\n"
      "\"Where it runs\" says for each machine: native, as declared; fallback, otherwise than "
      "declared, and how; refused,\nwith the engine's message and the remedy (=>); unknown, where "
      "no rule is known. Numbers lead to the list below.\n"
      "Nothing is loaded: headers and scales are read, and FP8 codes where engines merge scales. "
      "Tensors that are\nmissing, surplus or of a wrong shape or type are all listed, and the exit "
      "code is then 1.\n"
      "--compare-schemes --text makes each preset in a temporary folder (TMPDIR) and compares it "
      "with the original on\nthe head of the text: minutes for a small model.");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder; not needed for --architectures");
  app.add_flag("--layers", options->layers, "Also a row for each module");
  auto* why =
      app.add_option("--why", options->why,
                     "For one layer: every scheme, and every row of the engines' decision "
                     "tables, down to its own, and why it is not theirs; and where it runs");
  auto* recipe = app.add_option("--recipe", options->recipe,
                                "Instead of the model, what quantize would make of it by this "
                                "recipe, with time and memory");
  app.add_option("--calibration", options->calibration,
                 "For the estimate of --recipe: the calibration data; without it, 512 samples of "
                 "2048 tokens")
      ->needs(recipe);
  auto* compare_schemes =
      app.add_flag("--compare-schemes", options->compare_schemes,
                   "Every preset for this model: bytes, bits per weight, and where it would run")
          ->excludes(recipe)
          ->excludes(why);
  app.add_option("--text", options->text,
                 "For --compare-schemes: a text on which each preset's loss is measured")
      ->needs(compare_schemes);
  app.add_flag(
      "--architectures", options->architectures,
      "Instead: the model families that are known, and what is special about their blocks");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kInspectCommand;
const Command kInspectCommand = {"inspect", Add};

}  // namespace octavo
