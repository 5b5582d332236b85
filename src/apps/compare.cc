#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>

#include "apps/command.h"
#include "apps/compare_checkpoints.h"
#include "apps/task_flags.h"
#include "apps/text_windows.h"
#include "base/file.h"
#include "base/json.h"
#include "eval/comparison.h"
#include "eval/report_page.h"
#include "eval/same_tokenizer.h"

namespace octavo {

namespace {

struct Options {
  std::string base;
  std::vector<std::string> models;
  TextWindowFlags text;
  std::string chats;
  TaskFlags tasks;
  LayerFlags layers;
  bool answers = false;
  GateBounds bounds;
  std::string html;
  bool force = false;
  bool no_speed = false;
  bool json = false;
  bool markdown = false;
};

bool ReadsText(const Options& options) {
  return !options.text.text.empty() || !options.chats.empty() || options.answers;
}

// Windows and what they are of; none where only tasks are asked for.
Status ReadSource(const Options& options, ComparisonRequest* request) {
  const WindowOptions& cut = options.text.windows;
  if (!options.chats.empty()) {
    const int64_t rows =
        cut.max_windows > 0 ? cut.max_windows : std::numeric_limits<int64_t>::max();
    OCTAVO_ASSIGN_OR_RETURN(
        request->windows,
        ReadRowWindows(options.chats,
                       {.num_samples = rows, .max_length = cut.window, .shuffle = false},
                       options.base));
    request->text = fmt::format("{}, {} rows of at most {} tokens", options.chats,
                                request->windows.size(), cut.window);
  } else if (!options.text.text.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(request->windows, ReadTextWindows(options.text, options.base));
    request->text = fmt::format("{}, {} windows of {} tokens", options.text.text,
                                request->windows.size(), cut.window);
  }
  return OkStatus();
}

Status CheckTokenizers(const Options& options, const Context& context) {
  std::string text;
  if (!options.text.text.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(text, ReadFile(options.text.text));
  }
  for (const std::string& model : options.models)
    OCTAVO_RETURN_IF_ERROR(CheckSameTokenizer(options.base, model, text, context.log));
  return OkStatus();
}

std::string TerminalText(const Options& options, const Comparison& comparison) {
  std::string text = TableText(SummaryTable(comparison));
  for (size_t i = 0; i < comparison.models.size(); ++i)
    text += LayerText(options.layers, comparison, i);
  for (size_t i = 0; i < comparison.tasks.size(); ++i)
    text += "\n" + TableText(TasksTable(comparison, i));
  return text + BoundLines(comparison.bounds);
}

Status Run(const Options& options, const Context& context) {
  if (!ReadsText(options) && !options.tasks.any_task()) {
    return InvalidArgument(
        "there is nothing to compare by: give --text FILE, --chats FILE or --tasks");
  }
  if (options.layers.any() && !ReadsText(options))
    return InvalidArgument(
        "--layers and --sensitivity read a text: give --text FILE or --chats FILE");
  OCTAVO_RETURN_IF_ERROR(
      CheckBoundsHaveFigures(options.bounds, ReadsText(options), options.tasks.any_task()));
  if (!options.html.empty()) {
    OCTAVO_RETURN_IF_ERROR(CheckReportPath(options.html, options.force));
  }
  ComparisonRequest request{.base = options.base,
                            .models = options.models,
                            .windows = {},
                            .text = {},
                            .tasks = options.tasks.any_task() ? &options.tasks : nullptr,
                            .layers = options.layers,
                            .reads_answers = options.answers,
                            .bounds = options.bounds,
                            .speed = !options.no_speed,
                            .provenance = options.json || !options.html.empty()};
  OCTAVO_RETURN_IF_ERROR(CheckTokenizers(options, context));
  OCTAVO_RETURN_IF_ERROR(ReadSource(options, &request));
  OCTAVO_ASSIGN_OR_RETURN(const Comparison comparison, CompareCheckpoints(request, context));
  if (!options.html.empty()) {
    OCTAVO_RETURN_IF_ERROR(WriteReportPage(options.html, comparison, options.force));
    context.log.Info("the report is in " + options.html);
  }
  if (options.json) {
    Print(WriteJson(ToJson(comparison), {.indent = 2}) + "\n");
  } else {
    Print(options.markdown ? ComparisonMarkdown(comparison) : TerminalText(options, comparison));
  }
  return GateStatus(comparison.bounds);
}

CommandBody Add(CLI::App& app) {
  app.description(
      "What quantization cost: an original and checkpoints made from it read the same tokens in "
      "one "
      "walk, and\nanswer the same questions; KL divergence, perplexity, agreement, scores, bytes "
      "and speed, side by side");
  app.footer(
      "Examples:\n"
      "  octavo compare model model-w8a8 --text wiki.test.raw --max-windows 40\n"
      "  octavo compare model model-w8a8 model-w4a16 --chats chats.jsonl --html report.html\n"
      "  octavo compare model model-w8a8 --text wiki.test.raw --layers --sensitivity\n"
      "  octavo compare model model-w8a8 --tasks gsm8k,hellaswag --limit 250 --data data\n"
      "  octavo compare model model-w8a8 --text wiki.test.raw --max-kl 0.02 --max-ppl-increase "
      "1%\n\n"
      "KL divergence and agreement are of every position, perplexity of those whose next token is "
      "known; ± is\none standard error, windows drawn as wholes (docs/comparing.md).\n"
      "Exit codes: 0, 1 (an error), 2 (the command line), 3 (a bound is missed).");
  auto options = std::make_shared<Options>();
  app.add_option("base", options->base, "The original checkpoint folder")->required();
  app.add_option("models", options->models, "The quantized checkpoint folders")->required();
  AddTextWindowFlags(app, &options->text);
  app.add_option("--chats", options->chats,
                 "Rows to predict instead of a text, as quantize --calibration reads them "
                 "(\"messages\": through the chat template), one a window, at all positions; "
                 "--max-windows takes the first ones")
      ->excludes(app.get_option("--text"));
  AddTaskFlags(app, &options->tasks);
  AddLayerFlags(app, &options->layers);
  app.add_flag("--answers", options->answers,
               "Predict the right answers of --tasks, behind their questions, instead of a text")
      ->needs("--tasks")
      ->excludes(app.get_option("--text"))
      ->excludes(app.get_option("--chats"));
  AddGateFlags(app, "", &options->bounds);
  app.add_option("--min-recovery", options->bounds.min_recovery,
                 "Bound: percent of the original's score that every figure of --tasks keeps")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--html", options->html,
                 "Write a report: one page with plots, tables, recipe and hashes, that needs no "
                 "network");
  app.add_flag("--force", options->force, "Replace the report if it exists");
  app.add_flag("--no-speed", options->no_speed, "Do not measure tokens per second");
  AddJsonFlag(app, &options->json);
  app.add_flag("--markdown", options->markdown, "Print a block for a model card")
      ->excludes(app.get_option("--json"));
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kCompareCommand;
const Command kCompareCommand = {"compare", Add};

}  // namespace octavo
