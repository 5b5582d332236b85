#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "base/file.h"
#include "base/json.h"
#include "text/tokenizer.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string text;
  std::string file;
  bool special = false;
  bool json = false;
};

Status Run(const Options& options, const Context&) {
  std::string text = options.text;
  if (!options.file.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(text, ReadFile(options.file));
  }
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(options.model));
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer.Encode(text, options.special));
  if (!options.json) {
    Print(fmt::format("{}\n", fmt::join(ids, " ")));
    return OkStatus();
  }
  Value::Array id_values;
  Value::Array token_values;
  for (TokenId id : ids) {
    id_values.push_back(int64_t{id});
    token_values.push_back(tokenizer.IdToToken(id).value_or(""));
  }
  Value json = Value::MakeObject();
  json.Set("ids", std::move(id_values));
  json.Set("tokens", std::move(token_values));
  Print(WriteJson(json) + "\n");
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description("Token ids of a text");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "A folder with tokenizer.json")->required();
  auto* text = app.add_option("-p,--prompt", options->text, "The text");
  app.add_option("--file", options->file, "A file instead")->excludes(text);
  app.add_flag("--special", options->special, "Add special tokens, as for a prompt");
  AddJsonFlag(app, &options->json);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kTokenizeCommand;
const Command kTokenizeCommand = {"tokenize", Add};

}  // namespace octavo
