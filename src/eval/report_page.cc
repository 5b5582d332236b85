#include "eval/report_page.h"

#include <fmt/format.h>

#include "base/file.h"
#include "eval/report_html.h"
#include "eval/report_layers.h"
#include "eval/report_plots.h"

namespace octavo {

namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1c2230; --soft: #5b6472; --grid: #e3e6eb; --box: #f6f7f9;
  --good: #1a7f4b; --bad: #b3261e;
  --c0: #6b7280; --c1: #2563eb; --c2: #d97706; --c3: #059669; --c4: #c026d3; --c5: #dc2626; --c6: #0891b2; --c7: #7c3aed; }
@media (prefers-color-scheme: dark) { :root { --page: #14171d; --ink: #e6e9ef; --soft: #9aa4b2; --grid: #2b313b; --box: #1c2129;
  --good: #4ade80; --bad: #f87171;
  --c0: #9ca3af; --c1: #60a5fa; --c2: #fbbf24; --c3: #34d399; --c4: #e879f9; --c5: #f87171; --c6: #22d3ee; --c7: #a78bfa; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 66rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .9rem; }
.table { overflow: auto; max-height: 36rem; border: 1px solid var(--grid); border-radius: .4rem; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: left; border-bottom: 1px solid var(--grid); white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child { position: sticky; left: 0; }
th { position: sticky; top: 0; }
th:first-child { z-index: 1; }
td:first-child { background: var(--page); }
th { background: var(--box); font-weight: 600; }
.right { text-align: right; }
table.sortable th { cursor: pointer; }
table.sortable th[aria-sort=ascending]::after { content: " \25B2"; font-size: .7em; }
table.sortable th[aria-sort=descending]::after { content: " \25BC"; font-size: .7em; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; font-size: .95rem; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft); }
svg path { fill: none; stroke-width: 1.8; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .dashed { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 4 4; }
.legend { font-size: .85rem; color: var(--soft); margin: .2rem 0 0; }
.legend span { margin-right: .9rem; white-space: nowrap; }
.legend i { display: inline-block; width: .75em; height: .75em; border-radius: .2em; margin-right: .35em; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
pre { overflow-x: auto; background: var(--box); border: 1px solid var(--grid); border-radius: .4rem; padding: .7rem; font-size: .82rem; }
code { overflow-wrap: anywhere; font-size: .85em; }
summary { cursor: pointer; overflow-wrap: anywhere; }
)css";

// Sorts a table by the column whose heading is clicked; numbers by value, what has none last.
constexpr std::string_view kScript = R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th").forEach((head, column) => head.addEventListener("click", () => {
    const falling = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const key = row => row.cells[column].dataset.value || row.cells[column].textContent;
    const number = text => text.trim() === "" ? NaN : Number(text);
    const body = table.tBodies[0];
    [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)], [m, n] = [number(x), number(y)];
      if (isNaN(m) !== isNaN(n)) return isNaN(m) ? 1 : -1;
      const order = isNaN(m) ? x.localeCompare(y) : m - n;
      return falling ? -order : order;
    }).forEach(row => body.appendChild(row));
  }));
}
)js";

std::string BoundsHtml(const std::vector<BoundCheck>& bounds) {
  if (bounds.empty()) return "";
  std::string html = "<h2>Bounds</h2>\n";
  for (const BoundCheck& check : bounds) {
    html += fmt::format("<p><span class=\"{}\">{}</span> {}: {}</p>\n",
                        check.passed ? "good" : "bad", check.passed ? "passed" : "missed",
                        HtmlEscape(check.model), HtmlEscape(check.text));
  }
  return html;
}

std::string PlotsHtml(const Comparison& comparison) {
  if (!comparison.lockstep) return "";
  const LockstepResult& lockstep = *comparison.lockstep;
  std::vector<KlSeries> kl;
  std::vector<CalibrationSeries> calibration = {{comparison.base.label, lockstep.base.calibration}};
  std::vector<SizeAndLoss> sizes;
  for (size_t i = 0; i < comparison.models.size(); ++i) {
    const ComparedModel& model = comparison.models[i];
    const auto& [quality, divergence] = lockstep.models[i];
    kl.push_back({model.label, divergence.kl.histogram});
    calibration.push_back({model.label, quality.calibration});
    sizes.push_back({model.label, static_cast<double>(model.bytes) / 1e6, divergence.kl.mean.mean});
  }
  std::string html = "<h2>Plots</h2>\n<div class=\"plots\">\n";
  html += FigureHtml(
      "KL divergence from the original", KlHistogramPlot(kl),
      "Positions by KL(original || model); what lies beyond the axis is in its first and "
      "last bin. A hump to the right is harm that the mean hides.");
  html += FigureHtml("Calibration", CalibrationPlot(calibration),
                     "On the dashed line a model is right as often as it says.");
  if (sizes.size() > 1) {
    html += FigureHtml("Size against loss", SizeAgainstLossPlot(sizes),
                       "Down and to the left is better.");
  }
  return html + "</div>\n";
}

std::string TasksHtml(const Comparison& comparison) {
  if (comparison.tasks.empty()) return "";
  std::string html = "<h2>Tasks</h2>\n";
  for (size_t i = 0; i < comparison.tasks.size(); ++i)
    html += TableHtml(TasksTable(comparison, i), true);
  return html;
}

// What can be traced back of one checkpoint.
std::string OriginHtml(const ComparedModel& model) {
  std::string html = fmt::format(
      "<h3>{}</h3>\n<p class=\"soft\">{}</p>\n<p>{}; {:.1f} MB, {:.2f} bits a weight</p>\n",
      HtmlEscape(model.label), HtmlEscape(model.folder), HtmlEscape(model.scheme),
      static_cast<double>(model.bytes) / 1e6, model.bits_per_weight);
  if (!model.provenance) return html;
  for (const auto& [file, hash] : model.provenance->hashes) {
    html += fmt::format("<p class=\"soft\">{} sha256 <code>{}</code></p>\n", HtmlEscape(file),
                        HtmlEscape(hash));
  }
  if (!model.provenance->recipe.empty()) {
    html += fmt::format("<details><summary>{}</summary>\n<pre>{}</pre></details>\n",
                        HtmlEscape(model.provenance->recipe_source),
                        HtmlEscape(model.provenance->recipe));
  }
  return html;
}

std::string OriginsHtml(const Comparison& comparison) {
  std::string html = "<h2>Models</h2>\n" + OriginHtml(comparison.base);
  for (const ComparedModel& model : comparison.models) html += OriginHtml(model);
  const ComparisonRun& run = comparison.run;
  html += fmt::format("<h2>Run</h2>\n<pre>{}</pre>\n<p class=\"soft\">octavo {}, {}; {}</p>\n",
                      HtmlEscape(run.command_line), HtmlEscape(run.version),
                      HtmlEscape(run.environment), HtmlEscape(run.date));
  return html;
}

}  // namespace

std::string ReportPage(const Comparison& comparison) {
  std::string title = comparison.base.label + " →";
  for (size_t i = 0; i < comparison.models.size(); ++i)
    title += (i == 0 ? " " : ", ") + comparison.models[i].label;
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta "
      "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{0}</title>\n"
      "<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n<p class=\"soft\">What quantization "
      "cost, measured by octavo {2}, {3}</p>\n",
      HtmlEscape(title), kStyle, HtmlEscape(comparison.run.version),
      HtmlEscape(comparison.run.date));
  for (size_t i = 0; comparison.lockstep && i < comparison.models.size(); ++i)
    html += fmt::format("<p>{}</p>\n", HtmlEscape(Verdict(comparison, i)));
  html += BoundsHtml(comparison.bounds);
  html += "<h2>Figures</h2>\n" + TableHtml(SummaryTable(comparison), false);
  html += PlotsHtml(comparison);
  html += TasksHtml(comparison);
  for (size_t i = 0; i < comparison.models.size(); ++i) html += LayersHtml(comparison, i);
  html += OriginsHtml(comparison);
  return html + fmt::format("<script>{}</script>\n</body>\n</html>\n", kScript);
}

Status CheckReportPath(const std::filesystem::path& path, bool force) {
  if (force || !std::filesystem::exists(path)) return OkStatus();
  return AlreadyExists(path.string() + " is there; --force replaces it");
}

Status WriteReportPage(const std::filesystem::path& path, const Comparison& comparison,
                       bool force) {
  OCTAVO_RETURN_IF_ERROR(CheckReportPath(path, force));
  return WriteFileAtomically(path, ReportPage(comparison));
}

}  // namespace octavo
