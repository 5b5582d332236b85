#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "apps/command.h"
#include "apps/text_windows.h"
#include "base/json.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "eval/throughput.h"
#include "runtime/load.h"

namespace octavo {

namespace {

struct Options {
  std::string base;
  std::string model;
  TextWindowFlags text;
  int64_t kl_windows = 8;
  bool json = false;
};

// One column of the table.
struct Measured {
  int64_t bytes = 0;
  PerplexityResult perplexity;
  int64_t prefill_tokens = 0;
  double prefill_rate = 0;  // tokens per second
  double decode_rate = 0;
};

Result<Measured> Measure(const LoadedModel& loaded, const std::vector<Window>& windows,
                         const Context& context) {
  constexpr int64_t kDecodeTokens = 32;
  const Model& model = loaded.model();
  Measured measured;
  measured.bytes = loaded.checkpoint().total_bytes();
  OCTAVO_ASSIGN_OR_RETURN(measured.perplexity, Perplexity(model, windows, context));
  // As long a prompt as leaves room for what is decoded behind it.
  const auto room =
      static_cast<size_t>(std::max<int64_t>(1, model.spec.max_positions - kDecodeTokens));
  const std::span<const TokenId> tokens(windows.front().tokens);
  const auto prompt = tokens.first(std::min(room, tokens.size()));
  measured.prefill_tokens = std::ssize(prompt);
  OCTAVO_ASSIGN_OR_RETURN(measured.prefill_rate, MeasurePrefill(model, prompt, 0, context));
  OCTAVO_ASSIGN_OR_RETURN(
      measured.decode_rate,
      MeasureDecode(model, prompt, {.sequences = 1, .tokens = kDecodeTokens}, 0, context));
  return measured;
}

Value ToJson(const Measured& measured) {
  Value json = Value::MakeObject();
  json.Set("bytes", measured.bytes);
  json.Set("perplexity", measured.perplexity.perplexity);
  json.Set("nll", measured.perplexity.nll);
  json.Set("tokens", measured.perplexity.tokens);
  json.Set("prefill_tokens_per_second", measured.prefill_rate);
  json.Set("decode_tokens_per_second", measured.decode_rate);
  return json;
}

std::string Table(const Measured& before, const Measured& after,
                  const DivergenceResult& divergence) {
  const auto row = [](std::string_view label, double first, double second, int digits) {
    return fmt::format("  {:<34} {:>12.{}f} {:>12.{}f} {:>9.3f} x\n", label, first, digits, second,
                       digits, second / first);
  };
  std::string text = fmt::format("  {:<34} {:>12} {:>12} {:>11}\n", "", "before", "after", "ratio");
  text += row("weights, MB", static_cast<double>(before.bytes) / 1e6,
              static_cast<double>(after.bytes) / 1e6, 1);
  text += row("perplexity", before.perplexity.perplexity, after.perplexity.perplexity, 3);
  text += row(fmt::format("prefill of {}, tokens/s", before.prefill_tokens), before.prefill_rate,
              after.prefill_rate, 1);
  text += row("decode of one sequence, tokens/s", before.decode_rate, after.decode_rate, 1);
  text += fmt::format(
      "  KL divergence {:.4f} nats, same most likely token {:.1f} % (over {} positions)\n",
      divergence.kl, 100 * divergence.same_top1, divergence.positions);
  return text;
}

Status Run(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                          ReadTextWindows(options.text, options.base));
  OCTAVO_ASSIGN_OR_RETURN(const auto base, LoadModel(options.base, {}, context));
  OCTAVO_ASSIGN_OR_RETURN(const auto model, LoadModel(options.model, {}, context));
  OCTAVO_ASSIGN_OR_RETURN(const Measured before, Measure(*base, windows, context));
  OCTAVO_ASSIGN_OR_RETURN(const Measured after, Measure(*model, windows, context));
  const auto kl_windows = std::min(windows.size(), static_cast<size_t>(options.kl_windows));
  OCTAVO_ASSIGN_OR_RETURN(
      const DivergenceResult divergence,
      Divergence(base->model(), model->model(), std::span(windows).first(kl_windows), context));
  if (options.json) {
    Value json = Value::MakeObject();
    json.Set("before", ToJson(before));
    json.Set("after", ToJson(after));
    json.Set("kl", divergence.kl);
    json.Set("same_top1", divergence.same_top1);
    json.Set("kl_positions", divergence.positions);
    Print(WriteJson(json, {.indent = 2}) + "\n");
  } else {
    Print(Table(before, after, divergence));
  }
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description(
      "What a quantization cost: bytes, perplexity, KL divergence and speed of two checkpoints");
  app.footer("Example:\n  octavo compare model model-w8a8 --text wiki.test.raw --max-windows 40");
  auto options = std::make_shared<Options>();
  app.add_option("base", options->base, "The original checkpoint folder")->required();
  app.add_option("model", options->model, "The quantized checkpoint folder")->required();
  AddTextWindowFlags(app, &options->text);
  app.add_option("--kl-windows", options->kl_windows, "Windows over which the divergence is taken")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kCompareCommand;
const Command kCompareCommand = {"compare", Add};

}  // namespace octavo
