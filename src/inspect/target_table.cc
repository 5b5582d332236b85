#include "inspect/target_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace octavo {

namespace {

// Findings in the order in which they were first met, each with a number.
class FindingList {
 public:
  int64_t NumberOf(const Engine& engine, const Finding& finding) {
    const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.engine == &engine && entry.finding.outcome == finding.outcome &&
             entry.finding.text == finding.text && entry.finding.remedy == finding.remedy;
    });
    if (known != entries_.end()) return known - entries_.begin() + 1;
    entries_.push_back({&engine, finding});
    return std::ssize(entries_);
  }

  Table Print() const {
    Table table = {.key = "findings",
                   .title = "What happens there",
                   .columns = {{"number", "", true},
                               {"engine", "engine"},
                               {"outcome", "outcome"},
                               {"finding", "what, and what to do"}},
                   .rows = {}};
    for (const auto& [engine, finding] : entries_) {
      Value value = Value::MakeObject();
      value.Set("text", finding.text);
      value.Set("remedy", finding.remedy);
      value.Set("source", finding.source);
      value.Set("first_layer", finding.where);
      std::string text = finding.text;
      if (!finding.remedy.empty()) text += " => " + finding.remedy;
      table.rows.push_back(
          {Cell(std::ssize(table.rows) + 1, fmt::format("[{}]", table.rows.size() + 1)),
           engine->name,
           finding.outcome == Outcome::kNative ? std::string_view("remark")
                                               : OutcomeName(finding.outcome),
           Cell(std::move(value), std::move(text))});
    }
    return table;
  }

 private:
  struct Entry {
    const Engine* engine;
    Finding finding;
  };
  std::vector<Entry> entries_;
};

Cell VerdictCell(const Verdict& verdict, FindingList* findings) {
  std::vector<int64_t> numbers;
  for (const Finding& finding : verdict.findings)
    numbers.push_back(findings->NumberOf(*verdict.engine, finding));
  Value value = Value::MakeObject();
  value.Set("outcome", OutcomeName(verdict.outcome));
  Value indices = Value::MakeArray();
  indices.as_array().assign(numbers.begin(), numbers.end());
  value.Set("findings", std::move(indices));
  value.Set("rows", Cell::List(verdict.rows, "; ").value);
  std::string text(OutcomeName(verdict.outcome));
  if (!numbers.empty()) text += fmt::format(" [{}]", fmt::join(numbers, ","));
  return {std::move(value), std::move(text)};
}

Table DecisionTable(const Engine& engine, const std::vector<TableRow>& rows,
                    const std::vector<std::string>& machines) {
  Table table = {
      .key = fmt::format("why_{}_{}", engine.name, machines.front()),
      .title = fmt::format("What {} makes of it ({})", engine.name,
                           machines.size() == AllMachines().size()
                               ? std::string("on all machines")
                               : fmt::format("{}", fmt::join(machines, ", "))),
      .columns = {{"row", "row"}, {"matches", "matches"}, {"missing", "what it asks for in vain"}},
      .rows = {}};
  for (const TableRow& row : rows) {
    const bool matches = row.missing.empty();
    table.rows.push_back(
        {row.name, Cell(Value(matches), matches ? "yes" : "no"), Cell::List(row.missing, "; ")});
  }
  return table;
}

}  // namespace

std::vector<Table> TargetTables(std::span<const Subject> subjects, const ModelFacts& facts) {
  Table targets = {
      .key = "targets", .title = "Where it runs", .columns = {{"machine", "machine"}}, .rows = {}};
  Table rows = {.key = "engine_rows",
                .title = "The row of each engine's decision table that takes the layers",
                .columns = {{"engine", "engine"}, {"rows", "rows"}},
                .rows = {}};
  for (const Engine* engine : AllEngines())
    targets.columns.push_back({std::string(engine->name), std::string(engine->name)});
  FindingList findings;
  std::vector<std::vector<std::string>> rows_of(AllEngines().size());
  for (const Machine& machine : AllMachines()) {
    std::vector<Cell> row = {machine.name};
    for (size_t i = 0; i < AllEngines().size(); ++i) {
      const Engine& engine = *AllEngines()[i];
      if (!machine.is_cpu() && !engine.has_gpu_kernels) {
        row.emplace_back(Value(), "-");
        continue;
      }
      const Verdict verdict = JudgeAll(engine, machine, subjects, facts);
      row.push_back(VerdictCell(verdict, &findings));
      for (const std::string& name : verdict.rows) {
        if (std::find(rows_of[i].begin(), rows_of[i].end(), name) == rows_of[i].end())
          rows_of[i].push_back(name);
      }
    }
    targets.rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < rows_of.size(); ++i) {
    rows.rows.push_back({AllEngines()[i]->name, Cell::List(rows_of[i], "; ")});
  }
  std::vector<Table> tables = {std::move(rows), std::move(targets)};
  if (Table list = findings.Print(); !list.rows.empty()) tables.push_back(std::move(list));
  return tables;
}

std::vector<Table> DecisionTables(const Subject& subject) {
  std::vector<Table> tables;
  for (const Engine* engine : AllEngines()) {
    if (engine->rows == nullptr) continue;
    std::vector<std::pair<std::vector<TableRow>, std::vector<std::string>>> distinct;
    for (const Machine& machine : AllMachines()) {
      std::vector<TableRow> rows = engine->rows(subject, machine);
      const auto known = std::find_if(distinct.begin(), distinct.end(),
                                      [&](const auto& entry) { return entry.first == rows; });
      if (known == distinct.end()) {
        distinct.push_back({std::move(rows), {std::string(machine.name)}});
      } else {
        known->second.emplace_back(machine.name);
      }
    }
    for (const auto& [rows, machines] : distinct) {
      if (!rows.empty()) tables.push_back(DecisionTable(*engine, rows, machines));
    }
  }
  return tables;
}

}  // namespace octavo
