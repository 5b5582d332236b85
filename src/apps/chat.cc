#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <memory>

#include "apps/command.h"
#include "apps/generation_flags.h"
#include "apps/line_editor.h"
#include "base/file.h"
#include "base/json.h"
#include "runtime/conversation.h"
#include "runtime/load.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string system;
  GenerateOptions generate;
};

constexpr std::string_view kHelp =
    "/reset          forget the conversation, keep the system message\n"
    "/system TEXT    start anew with this system message; without TEXT: with none\n"
    "/save FILE      write the conversation as JSON ({\"messages\": [...]})\n"
    "/help           this\n"
    "/quit           end; so does Ctrl-D. Ctrl-C stops an answer\n"
    "//...           a message that begins with a slash\n";

// Ctrl-C stops the answer, a request to end also the program.
std::atomic<bool> stop_answer{false};
std::atomic<bool> stop_program{false};

extern "C" void HandleChatSignal(int number) {
  stop_answer = true;
  if (number == SIGTERM) stop_program = true;
}

// Without SA_RESTART, so that a signal also ends the wait for a line.
void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = HandleChatSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

class Chat {
 public:
  Chat(const Options& options, const Model& model, const Tokenizer& tokenizer,
       const ChatTemplate& chat_template, const Context& context)
      : options_(options),
        context_(context),
        conversation_(model, tokenizer, chat_template, context),
        system_(options.system) {
    conversation_.Start(system_);
  }

  // Until the input ends. From a pipe the first error ends it, and so does a signal.
  Status Run() {
    LineEditor editor("> ");
    if (editor.interactive()) Print("/help lists what there is besides talking.\n");
    std::string line;
    while (!quit_ && !stop_program) {
      const LineEditor::Outcome outcome = editor.ReadLine(&line);
      if (outcome == LineEditor::Outcome::kEnd) break;
      stop_answer = false;
      if (outcome == LineEditor::Outcome::kInterrupted) {
        if (!editor.interactive()) return Cancelled("stopped on request");
        Print("\n");
        continue;
      }
      const Status status = Take(line);
      if (status.ok()) continue;
      if (!editor.interactive()) return status;
      fmt::print(stderr, "{}\n", status.ToString());
    }
    if (editor.interactive()) Print("\n");
    return OkStatus();
  }

 private:
  Status Take(std::string_view line) {
    if (line.empty()) return OkStatus();
    if (line.starts_with("//")) return Answer(line.substr(1));
    if (!line.starts_with("/")) return Answer(line);
    const std::string_view command = line.substr(0, line.find(' '));
    std::string_view rest = line.substr(command.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return Obey(command, rest);
  }

  Status Obey(std::string_view command, std::string_view rest) {
    if (command == "/quit" || command == "/exit") {
      quit_ = true;
    } else if (command == "/help") {
      Print(kHelp);
    } else if (command == "/reset") {
      conversation_.Start(system_);
    } else if (command == "/system") {
      system_ = rest;
      conversation_.Start(system_);
    } else if (command == "/save") {
      return Save(std::string(rest));
    } else {
      return InvalidArgument(fmt::format("there is no {}; /help lists what there is", command));
    }
    return OkStatus();
  }

  Status Save(const std::string& path) const {
    if (path.empty()) return InvalidArgument("/save needs the name of a file");
    Value json = Value::MakeObject();
    json.Set("messages", conversation_.messages());
    return WriteFileAtomically(path, WriteJson(json, {.indent = 2}) + "\n");
  }

  Status Answer(std::string_view message) {
    OCTAVO_ASSIGN_OR_RETURN(const GenerateResult result,
                            conversation_.Ask(message, options_.generate, Print));
    Print("\n");
    context_.log.Info(SpeedLine(result));
    return OkStatus();
  }

  const Options& options_;
  const Context& context_;
  Conversation conversation_;
  std::string system_;
  bool quit_ = false;
};

Status Run(Options& options, const Context& program) {
  OCTAVO_RETURN_IF_ERROR(options.generate.sampling.Check());
  OCTAVO_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(options.model));
  OCTAVO_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::Load(options.model));
  OCTAVO_ASSIGN_OR_RETURN(const auto loaded, LoadModel(options.model, {}, program));
  OCTAVO_ASSIGN_OR_RETURN(options.generate.eos_tokens,
                          ReadEosTokens(options.model, loaded->checkpoint().config()));
  const Context context{.pool = program.pool,
                        .isa = program.isa,
                        .log = program.log,
                        .progress = program.progress,
                        .cancelled = &stop_answer};
  CatchSignals();
  return Chat(options, loaded->model(), tokenizer, chat_template, context).Run();
}

CommandBody Add(CLI::App& app) {
  app.description("Talk with a model; from a pipe, each line is a message");
  app.footer(std::string("While it runs:\n") + std::string(kHelp) +
             "\nExamples:\n"
             "  octavo chat model-w8a8 --temperature 0.7 --top-p 0.9\n"
             "  printf 'Name a river.\\nAnd where does it end?\\n' | octavo chat model-w8a8");
  auto options = std::make_shared<Options>();
  options->generate.max_tokens = 1024;
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_option("--system", options->system, "A system message");
  AddGenerationFlags(app, &options->generate);
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kChatCommand;
const Command kChatCommand = {"chat", Add};

}  // namespace octavo
