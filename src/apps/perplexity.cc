#include "eval/perplexity.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "apps/text_windows.h"
#include "base/json.h"
#include "runtime/load.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  TextWindowFlags text;
  bool json = false;
};

Status Run(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                          ReadTextWindows(options.text, options.model));
  OCTAVO_ASSIGN_OR_RETURN(const auto loaded, LoadModel(options.model, {}, context));
  OCTAVO_ASSIGN_OR_RETURN(const PerplexityResult result,
                          Perplexity(loaded->model(), windows, context));
  if (options.json) {
    Value json = Value::MakeObject();
    json.Set("perplexity", result.perplexity);
    json.Set("nll", result.nll);
    json.Set("tokens", result.tokens);
    json.Set("windows", result.windows);
    json.Set("window", options.text.windows.window);
    json.Set("stride", options.text.Cut().stride);
    json.Set("seconds", result.seconds);
    Print(WriteJson(json, {.indent = 2}) + "\n");
    return OkStatus();
  }
  Print(fmt::format(
      "perplexity {:.4f}  ({:.5f} nats a token over {} tokens in {} windows, {:.1f} s)\n",
      result.perplexity, result.nll, result.tokens, result.windows, result.seconds));
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description("Perplexity of a checkpoint on a text, in windows; float32 key/value cache");
  app.footer(
      "Example:\n  octavo perplexity model --text wiki.test.raw --window 512 --max-windows 40");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder")->required();
  AddTextWindowFlags(app, &options->text);
  app.get_option("--text")->required();
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kPerplexityCommand;
const Command kPerplexityCommand = {"perplexity", Add};

}  // namespace octavo
