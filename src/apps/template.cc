#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "base/file.h"
#include "base/json.h"
#include "text/chat_template.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string messages;
  bool generation_prompt = false;
};

// {"messages": [...], further variables of the template ...}, or just the list of messages.
Status Run(const Options& options, const Context&) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.messages, int64_t{16} << 20));
  OCTAVO_ASSIGN_OR_RETURN(Value input, ParseJson(text, options.messages));
  Value messages = input;
  Value variables = Value::MakeObject();
  if (input.is_object()) {
    const Value* found = input.Find("messages");
    messages = found == nullptr ? Value::MakeArray() : *found;
    input.Erase("messages");
    variables = std::move(input);
  }
  if (options.generation_prompt) variables.Set("add_generation_prompt", true);
  OCTAVO_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::Load(options.model));
  OCTAVO_ASSIGN_OR_RETURN(const std::string rendered, chat_template.Render(messages, variables));
  Print(rendered);
  return OkStatus();
}

CommandBody Add(CLI::App& app) {
  app.description("Render a chat with the model's chat template");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_option("messages", options->messages,
                 "A JSON file: a list of messages, or an object with \"messages\" and variables")
      ->required();
  app.add_flag("--add-generation-prompt", options->generation_prompt,
               "End where the assistant begins to speak");
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kTemplateCommand;
const Command kTemplateCommand = {"template", Add};

}  // namespace octavo
