#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/bit_flags.h"
#include "apps/command.h"
#include "apps/verify.h"
#include "base/file.h"
#include "base/json.h"
#include "base/usage.h"
#include "compress/measure_bits.h"
#include "compress/pipeline.h"
#include "compress/recipe.h"
#include "compress/report.h"
#include "quant/args.h"

namespace octavo {

namespace {

struct Options {
  QuantizeOptions quantize;
  std::string model;
  std::string out;
  std::string calibration;
  std::string recipe;
  std::string write_recipe;
  RecipeFlags flags;
  BitFlags bits;
  std::string method = "gptq";
  std::string propagate = "full";
  bool no_shuffle = false;
  VerifyFlags verify;
  bool json = false;
};

Result<Recipe> ReadRecipe(const Options& options, const Context& context) {
  if (options.recipe.empty()) {
    RecipeFlags flags = options.flags;
    flags.gptq = options.method == "gptq";
    flags.awq = options.method == "awq";
    if (options.bits.given()) return ChooseRecipe(options.bits, flags, options.quantize, context);
    return MakeRecipe(flags, context.log);
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.recipe, int64_t{16} << 20));
  return ParseRecipe(text, options.recipe, context.log);
}

void PrintSummary(const Options& options, const QuantizationReport& report) {
  std::string text;
  if (options.quantize.dry_run) {
    const Estimate& estimate = *report.estimate;
    text = fmt::format(
        "dry run: nothing was written; the output would hold {:.1f} MB of weights\n"
        "  estimates: {:.0f} s, {:.0f} MiB of memory, {:.1f} MB of disk beside the output until it "
        "is finished\n"
        "  calibration states: {}\n",
        static_cast<double>(report.output_bytes) / 1e6, estimate.seconds,
        static_cast<double>(estimate.memory_bytes) / (1024 * 1024),
        static_cast<double>(estimate.work_bytes) / 1e6,
        estimate.hidden_in_memory ? "held in memory" : "read from disk");
  } else {
    text = fmt::format(
        "{}\n  {} layers quantized, {:.1f} MB -> {:.1f} MB\n{}  {} samples, {} calibration tokens\n"
        "  {:.1f} s, {:.1f} CPU s, peak memory {:.0f} MiB\n",
        options.out, report.layers.size(), static_cast<double>(report.source_bytes) / 1e6,
        static_cast<double>(report.output_bytes) / 1e6,
        report.attention.empty() ? ""
                                 : "  keys and values: " + ScaleSummary(report.attention) + "\n",
        report.samples, report.tokens, report.seconds, report.cpu_seconds,
        static_cast<double>(report.peak_rss_bytes) / (1024 * 1024));
    if (report.layers_with_notes() > 0) {
      text += fmt::format("  {} layers with notes, see quantization_report.json\n",
                          report.layers_with_notes());
    }
  }
  Print(text);
}

// What the chosen mix costs once it is made, on the positions it was chosen by.
Status ReportChosen(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const double kl, MeasureOutput(options.quantize, context));
  context.log.Info(fmt::format("KL to the original as quantized: {:.4g} nats", kl));
  const auto& bound = options.bits.goal.max_kl;
  if (bound && kl > *bound) {
    context.log.Warning(
        fmt::format("that is above --max-kl {}; choose again with a bound as much lower", *bound));
  }
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description("Quantize a checkpoint into compressed-tensors format");
  app.footer(
      "Examples:\n"
      "  octavo quantize model -o out --recipe recipe.yaml --calibration chats.jsonl\n"
      "  octavo quantize model -o out --scheme W8A8 --smoothquant 0.8 --calibration chats.jsonl\n"
      "  octavo quantize model -o out --scheme W8A8 --method rtn                       (needs no "
      "data)\n\n"
      "Calibration data: rows of a .jsonl, .json or .csv file with \"messages\" or "
      "\"conversations\" (the chat\ntemplate is applied), \"text\" or \"input_ids\"; or a .txt "
      "file, cut into pieces of --max-length tokens.\nAny of them may be packed (.gz). For "
      "Parquet: "
      "tools/fetch-data.\n"
      "An interrupted run (Ctrl-C, a crash, a full disk) goes on when the same command is given "
      "again.\n"
      "Recipes are llm-compressor's YAML (docs/recipes.md): QuantizationModifier, GPTQModifier, "
      "SmoothQuantModifier,\nLogarithmicEqualizationModifier.");
  auto options = std::make_shared<Options>();
  DatasetOptions& dataset = options->quantize.dataset;
  app.add_option("model", options->model, "The checkpoint folder to quantize")->required();
  app.add_option("-o,--output", options->out, "The folder to make")->required();
  auto* recipe = app.add_option("--recipe", options->recipe, "A recipe in llm-compressor's YAML");
  auto* scheme = app.add_option(
      "--scheme", options->flags.scheme,
      fmt::format("A preset instead of a recipe: {}", fmt::join(PresetNames(), ", ")));
  scheme->excludes(recipe);
  AddBitFlags(app, recipe, scheme, &options->bits);
  app.add_option("--write-recipe", options->write_recipe,
                 "Write the recipe that flags make to this file; with --dry-run nothing else");
  app.add_option("--group-size", options->flags.group_size,
                 "Weights that share a scale, where the preset's 128 does not divide the model's "
                 "sizes")
      ->excludes(recipe)
      ->check(CLI::PositiveNumber);
  app.add_option("--smoothquant", options->flags.smoothquant,
                 "Smooth activations first, with this strength (0.8 is usual)")
      ->excludes(recipe)
      ->check(CLI::Range(0.0, 1.0));
  app.add_option(
         "--kv-cache", options->flags.kv_cache,
         "Also quantize what attention keeps, keys and values: fp8 (as engines serve it) or "
         "int8, calibrated")
      ->excludes(recipe)
      ->check(CLI::IsMember({"fp8", "int8"}));
  app.add_option("--method", options->method,
                 "How weights are rounded: gptq, awq (to nearest, after a search for scales) or "
                 "rtn (to nearest)")
      ->excludes(recipe)
      ->check(CLI::IsMember({"gptq", "awq", "rtn"}))
      ->capture_default_str();
  app.add_option("--ignore", options->flags.ignore, "Layers to leave alone: names or re:patterns")
      ->excludes(recipe)
      ->capture_default_str();
  app.add_option("--calibration", options->calibration,
                 "Calibration data (.jsonl, .json, .csv or .txt, also .gz)");
  app.add_option("--num-samples", dataset.num_samples, "Calibration samples to use")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-length", dataset.max_length, "Tokens of a sample; longer ones are cut")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", dataset.seed, "Seed of the choice of samples")->capture_default_str();
  app.add_flag("--no-shuffle", options->no_shuffle, "Take the first samples, in order");
  app.add_option("--max-shard-size", options->quantize.max_shard_bytes,
                 "Largest weight file, bytes (5GB, 500MB ...)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_option("--memory", options->quantize.memory_bytes,
                 "Memory to stay within (2GiB, 500MiB ...): calibration states that do not fit are "
                 "read from disk")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_flag("--dry-run", options->quantize.dry_run,
               "Check recipe, model and data, estimate time, memory and disk, write nothing");
  app.add_flag("--restart", options->quantize.restart,
               "Begin anew where an interrupted run left off; without it the same command goes on");
  app.add_flag("--force", options->quantize.force, "Replace the output folder if it exists");
  app.add_option("--propagate", options->propagate,
                 "What the next block is calibrated on: the quantized block as it will be served "
                 "(full), its weights "
                 "alone quantized (weights), or the original (none)")
      ->check(CLI::IsMember({"full", "weights", "none"}))
      ->capture_default_str();
  AddVerifyFlags(app, &options->verify);
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) -> Status {
    options->quantize.model = options->model;
    options->quantize.out = options->out;
    options->quantize.calibration = options->calibration;
    options->quantize.propagate = options->propagate == "full"      ? Propagate::kFull
                                  : options->propagate == "weights" ? Propagate::kWeights
                                                                    : Propagate::kNone;
    options->quantize.dataset.shuffle = !options->no_shuffle;
    if (options->quantize.memory_bytes > 0) ReturnFreedMemory();
    const bool verifies = options->verify.on && !options->quantize.dry_run;
    ComparisonRequest verification;
    if (options->verify.on) {
      OCTAVO_ASSIGN_OR_RETURN(verification, PlanVerification(options->verify, options->quantize));
    }
    OCTAVO_ASSIGN_OR_RETURN(const Recipe parsed, ReadRecipe(*options, context));
    if (!options->write_recipe.empty())
      OCTAVO_RETURN_IF_ERROR(WriteFileAtomically(options->write_recipe, RecipeYaml(parsed)));
    OCTAVO_ASSIGN_OR_RETURN(const QuantizationReport report,
                            Quantize(options->quantize, parsed, context));
    Value json = ToJson(report);
    if (!options->json) PrintSummary(*options, report);
    Status verdict;
    if (verifies) {
      OCTAVO_ASSIGN_OR_RETURN(const Comparison comparison,
                              CompareCheckpoints(verification, context));
      json.Set("verification", ToJson(comparison));
      verdict = GateStatus(comparison.bounds);
      if (!options->json) {
        Print(fmt::format("  verified on {}:\n  {}\n{}", comparison.text, Verdict(comparison, 0),
                          BoundLines(comparison.bounds)));
      }
    }
    if (options->bits.given() && !options->quantize.dry_run)
      OCTAVO_RETURN_IF_ERROR(ReportChosen(*options, context));
    if (options->json) Print(WriteJson(json, {.indent = 2}) + "\n");
    return verdict;
  };
}

}  // namespace

extern const Command kQuantizeCommand;
const Command kQuantizeCommand = {"quantize", Add};

}  // namespace octavo
