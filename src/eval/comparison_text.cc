// The figures of a comparison for people: the table, the sentence, the block for a model card.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "eval/comparison.h"

namespace octavo {

namespace {

// Two error bars of a normal figure hold 95 %.
constexpr double kTwoSided95 = 1.96;

std::string WithError(const WindowedMean& mean, int digits, double scale = 1) {
  std::string text = fmt::format("{:.{}f}", scale * mean.mean, digits);
  if (mean.error) text += fmt::format(" ± {:.{}f}", scale * *mean.error, digits);
  return text;
}

std::string Percent(double share, int digits = 1) {
  return fmt::format("{:.{}f} %", 100 * share, digits);
}

// Rows whose cells are asked of each checkpoint.
class SummaryRows {
 public:
  explicit SummaryRows(const Comparison& comparison) : comparison_(comparison) {}

  // Of the base and each model.
  void Models(const std::string& label,
              const std::function<std::string(const ComparedModel&)>& cell) {
    std::vector<Cell>& row = rows_.emplace_back();
    row.emplace_back(label);
    row.emplace_back(cell(comparison_.base));
    for (const ComparedModel& model : comparison_.models) row.emplace_back(cell(model));
  }
  void Qualities(const std::string& label,
                 const std::function<std::string(const PredictionQuality&)>& cell) {
    std::vector<Cell>& row = rows_.emplace_back();
    row.emplace_back(label);
    row.emplace_back(cell(comparison_.lockstep->base));
    for (const auto& model : comparison_.lockstep->models) row.emplace_back(cell(model.quality));
  }
  // Of each model against the base.
  void Divergences(const std::string& label,
                   const std::function<std::string(const Divergence&)>& cell) {
    std::vector<Cell>& row = rows_.emplace_back();
    row.emplace_back(label);
    row.emplace_back("");
    for (const auto& model : comparison_.lockstep->models) row.emplace_back(cell(model.divergence));
  }
  std::vector<std::vector<Cell>> Take() { return std::move(rows_); }

 private:
  const Comparison& comparison_;
  std::vector<std::vector<Cell>> rows_;
};

void AddLockstepRows(SummaryRows* rows) {
  rows->Qualities("perplexity",
                  [](const PredictionQuality& q) { return WithError(q.perplexity, 3); });
  rows->Divergences("perplexity, times the original's",
                    [](const Divergence& d) { return WithError(d.perplexity_ratio, 4); });
  rows->Divergences("KL divergence, mean (nats)",
                    [](const Divergence& d) { return WithError(d.kl.mean, 5); });
  rows->Divergences("KL divergence, median; 99.9 %", [](const Divergence& d) {
    return fmt::format("{:.5f}; {:.3f}", d.kl.median, d.kl.percentile_999);
  });
  rows->Divergences("same most likely token",
                    [](const Divergence& d) { return Percent(d.same_top1); });
  rows->Divergences("of the five most likely, in common",
                    [](const Divergence& d) { return Percent(d.same_top5); });
  rows->Divergences("true token's probability, rms change",
                    [](const Divergence& d) { return Percent(d.true_token.rms, 2); });
  rows->Divergences("true token's probability, 5 %; 95 %", [](const Divergence& d) {
    return fmt::format("{:+.2f}; {:+.2f} %", 100 * d.true_token.percentiles[1],
                       100 * d.true_token.percentiles[5]);
  });
  rows->Qualities("miscalibration",
                  [](const PredictionQuality& q) { return Percent(q.calibration_error); });
}

// "163.2 (0.61 x)": the model's, and of the base's.
std::string WithRatio(double value, double base) {
  if (value == base) return fmt::format("{:.1f}", value);
  return fmt::format("{:.1f} ({:.2f} x)", value, value / base);
}

void AddSpeedRows(const Speed& base, SummaryRows* rows) {
  const auto rate = [&](const ComparedModel& model, double Speed::*which) {
    return model.speed ? WithRatio(*model.speed.*which, base.*which) : std::string();
  };
  rows->Models(fmt::format("prefill of {}, tokens/s", base.prompt_tokens),
               [&](const ComparedModel& model) { return rate(model, &Speed::prefill); });
  rows->Models("decode of one sequence, tokens/s",
               [&](const ComparedModel& model) { return rate(model, &Speed::decode); });
}

// "0.727", or that it is small.
Cell PCell(double p) {
  return {p, p < 0.001 ? "< 0.001" : fmt::format("{:.3f}", p)};
}

std::string TasksVerdict(const std::vector<PairedTask>& tasks) {
  std::string text;
  for (const PairedTask& task : tasks) {
    const PairedFigure& figure = task.figures.front();
    text += fmt::format("{}{}: {}.", text.empty() ? "" : " ", task.name, figure.sentence);
  }
  return text;
}

std::string MarkdownCell(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '`' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string MarkdownTable(const Table& table) {
  std::string head = "|";
  std::string rule = "|";
  for (const Column& column : table.columns) {
    head += " " + MarkdownCell(column.heading) + " |";
    rule += column.right ? " ---: |" : " --- |";
  }
  std::string text = head + "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const Cell& cell : row) text += " " + MarkdownCell(cell.text) + " |";
    text += "\n";
  }
  return text;
}

}  // namespace

Table SummaryTable(const Comparison& comparison) {
  Table table{.key = "summary",
              .title = {},
              .columns = {{"figure", ""}, {"base", comparison.base.label, true}},
              .rows = {}};
  for (const ComparedModel& model : comparison.models)
    table.columns.push_back({model.label, model.label, true});
  SummaryRows rows(comparison);
  rows.Models("weights, MB", [&](const ComparedModel& model) {
    return WithRatio(static_cast<double>(model.bytes) / 1e6,
                     static_cast<double>(comparison.base.bytes) / 1e6);
  });
  rows.Models("bits a weight, all tensors", [](const ComparedModel& model) {
    return fmt::format("{:.2f}", model.bits_per_weight);
  });
  if (comparison.lockstep) AddLockstepRows(&rows);
  if (comparison.base.speed) AddSpeedRows(*comparison.base.speed, &rows);
  table.rows = rows.Take();
  if (comparison.lockstep) {
    table.notes.push_back(
        fmt::format("over {}: {} positions", comparison.text, comparison.lockstep->positions));
  }
  return table;
}

Table TasksTable(const Comparison& comparison, size_t model) {
  const std::string& label = comparison.models[model].label;
  Table table{.key = "tasks",
              .title = {},
              .columns = {{"task", "task"},
                          {"metric", "metric"},
                          {"documents", "documents", true},
                          {"base", comparison.base.label, true},
                          {"value", label, true},
                          {"recovery", "recovery", true},
                          {"p", "McNemar p", true},
                          {"interval", "95 % of the difference", true}},
              .rows = {},
              .notes = {}};
  for (const PairedTask& task : comparison.tasks[model]) {
    for (const PairedFigure& figure : task.figures) {
      const std::string filter = figure.filter == "none" ? "" : ", " + figure.filter;
      table.rows.push_back(
          {task.name, figure.metric + filter, task.documents, NumberCell(figure.base, 4),
           NumberCell(figure.model, 4),
           figure.recovery ? Cell(*figure.recovery, fmt::format("{:.1f} %", *figure.recovery))
                           : Cell("-"),
           figure.mcnemar ? PCell(figure.mcnemar->p) : Cell("-"),
           fmt::format("{:+.4f} to {:+.4f}", figure.difference.low, figure.difference.high)});
      table.notes.push_back(
          fmt::format("{}, {}: {}.", task.name, figure.metric + filter, figure.sentence));
    }
  }
  return table;
}

std::string Verdict(const Comparison& comparison, size_t model) {
  if (!comparison.lockstep) return TasksVerdict(comparison.tasks[model]);
  const Divergence& divergence = comparison.lockstep->models[model].divergence;
  const WindowedMean& ratio = divergence.perplexity_ratio;
  const double change = 100 * (ratio.mean - 1);
  std::string perplexity =
      fmt::format("perplexity {} {:.2f} %", change < 0 ? "falls by" : "rises by", std::abs(change));
  if (ratio.error) {
    const double chance = kTwoSided95 * 100 * *ratio.error;
    perplexity +=
        std::abs(change) > chance
            ? fmt::format(" (± {:.2f} at 95 %)", chance)
            : fmt::format(", which cannot be told from chance (± {:.2f} at 95 %)", chance);
  }
  return fmt::format(
      "{}: {}; KL divergence {:.4f} nats, the same most likely token at {:.1f} % of positions.",
      comparison.models[model].label, perplexity, divergence.kl.mean.mean,
      100 * divergence.same_top1);
}

std::string ComparisonMarkdown(const Comparison& comparison) {
  std::string text = "## What quantization cost\n\n" + MarkdownTable(SummaryTable(comparison));
  if (comparison.lockstep) {
    text += fmt::format("\nOver {}; {} positions, ± one standard error. ",
                        MarkdownCell(comparison.text), comparison.lockstep->positions);
  } else {
    text += "\n";
  }
  for (size_t i = 0; i < comparison.tasks.size(); ++i)
    text += MarkdownTable(TasksTable(comparison, i)) + "\n";
  std::string command = comparison.run.command_line;
  std::replace(command.begin(), command.end(), '\n', ' ');
  text += fmt::format("Measured by octavo {}:\n\n    {}\n", comparison.run.version, command);
  return text;
}

}  // namespace octavo
