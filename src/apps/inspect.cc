#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "base/json.h"
#include "inspect/inspection.h"
#include "inspect/layer_table.h"
#include "inspect/target_table.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string why;
  bool layers = false;
  bool json = false;
};

Result<std::vector<Table>> MakeTables(const Options& options, const Inspection& inspection,
                                      const Context& context) {
  if (!options.why.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(const InspectedModule* module, inspection.Find(options.why));
    return std::vector<Table>{WhyTable(*module)};
  }
  std::vector<Table> tables = {SummaryTable(inspection)};
  if (options.layers) tables.push_back(LayersTable(inspection));
  if (!inspection.problems.empty()) tables.push_back(ProblemTable(inspection.problems));
  if (!inspection.config) return tables;
  OCTAVO_ASSIGN_OR_RETURN(auto losses, FindFusedScaleLosses(inspection, context));
  if (!losses.empty()) tables.push_back(FusedScaleTable(losses));
  const std::vector<Subject> subjects = SubjectsOf(inspection);
  std::vector<Table> targets = TargetTables(subjects, FactsOf(inspection, std::move(losses)));
  std::move(targets.begin(), targets.end(), std::back_inserter(tables));
  return tables;
}

void PrintTables(const std::vector<Table>& tables, bool json) {
  if (json) return Print(WriteJson(TablesJson(tables), {.indent = 2}) + "\n");
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + TableText(table);
  Print(text);
}

// Whether the checkpoint would load; what keeps it from that was printed.
Status Verdict(const std::string& model, const Inspection& inspection) {
  const auto errors = std::count_if(inspection.problems.begin(), inspection.problems.end(),
                                    [](const Problem& problem) { return problem.is_error(); });
  if (errors == 0) return OkStatus();
  return InvalidArgument(
      fmt::format("{}: {} problems keep it from being loaded, listed above", model, errors));
}

Status Run(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const Inspection inspection, InspectCheckpoint(options.model, context));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Table> tables,
                          MakeTables(options, inspection, context));
  PrintTables(tables, options.json);
  return Verdict(options.model, inspection);
}

CommandBody Add(CLI::App& app) {
  app.description("What a checkpoint holds, why each layer runs as it does, and where it can run");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_flag("--layers", options->layers, "Also a row for each layer");
  app.add_option("--why", options->why, "For one layer: every scheme, and why it does not match");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kInspectCommand;
const Command kInspectCommand = {"inspect", Add};

}  // namespace octavo
