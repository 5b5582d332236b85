// The `octavo` program: parses the command line, sets up threads, log and Ctrl-C, and runs one
// command.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/command.h"

namespace octavo {

#define OCTAVO_COMMAND(name) extern const Command k##name##Command;
#include "apps/commands.inc"
#undef OCTAVO_COMMAND

void Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void AddJsonFlag(CLI::App& app, bool* json) {
  app.add_flag("--json", *json, "Print the result as JSON on stdout");
}

namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
constexpr int kExitBoundMissed = 3;
constexpr int kExitCancelled = 130;  // what shells give for Ctrl-C

std::atomic<bool> cancelled{false};

// The first Ctrl-C asks the work to stop and clean up; a second one ends the program at once.
extern "C" void HandleInterrupt(int) {
  if (cancelled.exchange(true)) std::_Exit(kExitCancelled);
}

struct GlobalOptions {
  int threads = 0;
  bool quiet = false;
  bool verbose = false;
};

void AddGlobalOptions(CLI::App& app, GlobalOptions* options) {
  app.add_option("--threads", options->threads, "Threads to use; 0: all processors")
      ->check(CLI::Range(0, 1024));
  app.add_flag("-q,--quiet", options->quiet, "Only warnings and errors, no progress");
  app.add_flag("-v,--verbose", options->verbose, "Also details: which kernel runs each layer");
}

int RunCommand(const CommandBody& body, const GlobalOptions& options) {
  const auto fail = [](const Status& status) {
    fmt::print(stderr, "octavo: {}\n", status.ToString());
    if (status.code() == StatusCode::kBoundMissed) return kExitBoundMissed;
    return status.code() == StatusCode::kCancelled ? kExitCancelled : kExitError;
  };
  const Result<Isa> isa = SelectIsa();
  if (!isa.ok()) return fail(isa.status());
  std::signal(SIGINT, HandleInterrupt);
  std::signal(SIGTERM, HandleInterrupt);

  ThreadPool pool(options.threads);
  const auto log = MakeStderrLogger(options.quiet     ? LogLevel::kWarning
                                    : options.verbose ? LogLevel::kDebug
                                                      : LogLevel::kInfo);
  const auto progress = MakeTerminalProgress();
  const Context context{.pool = pool,
                        .isa = *isa,
                        .log = *log,
                        .progress = options.quiet ? NullProgress() : *progress,
                        .cancelled = &cancelled};
  const Status status = body(context);
  progress->Finish();
  return status.ok() ? 0 : fail(status);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Octavo quantizes Hugging Face LLM checkpoints into the compressed-tensors format that vLLM, "
      "SGLang and\n"
      "transformers load, runs such checkpoints on the CPU, and measures what the quantization "
      "cost.",
      "octavo");
  app.footer(
      "The usual way:\n"
      "  octavo import model.gguf -o model            (or take any Llama-like Hugging Face "
      "folder)\n"
      "  octavo quantize model -o model-w8a8 --scheme W8A8 --smoothquant 0.8 --calibration "
      "chats.jsonl\n"
      "  octavo compare model model-w8a8 --text some.txt\n"
      "  octavo eval model-w8a8 --tasks gsm8k,hellaswag --data data --limit 250\n"
      "  octavo generate model-w8a8 --chat -p \"Why is the sky blue?\"\n\n"
      "OCTAVO_ISA=ref|avx2|avx512|avx512_vnni caps the instructions that kernels use.");
  app.set_version_flag("--version", "octavo " OCTAVO_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions options;
  AddGlobalOptions(app, &options);

  const Command* const commands[] = {
#define OCTAVO_COMMAND(name) &k##name##Command,
#include "apps/commands.inc"
#undef OCTAVO_COMMAND
  };
  std::vector<std::pair<CLI::App*, CommandBody>> bodies;
  for (const Command* command : commands) {
    CLI::App* sub = app.add_subcommand(command->name);
    bodies.emplace_back(sub, command->add(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end well; everything else is a mistake in the command line.
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  for (const auto& [sub, body] : bodies) {
    if (sub->parsed()) return RunCommand(body, options);
  }
  return kExitUsage;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  return octavo::Main(argc, argv);
}
