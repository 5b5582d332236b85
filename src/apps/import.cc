#include <CLI/CLI.hpp>
#include <memory>

#include "apps/command.h"
#include "convert/import_gguf.h"

namespace octavo {

namespace {

struct Options {
  std::string gguf;
  std::string out;
  ImportOptions import;
};

CommandBody Add(CLI::App& app) {
  app.description(
      "Turn a GGUF file into a Hugging Face folder: BF16 weights, config, tokenizer, chat "
      "template");
  auto options = std::make_shared<Options>();
  app.add_option("gguf", options->gguf,
                 "The GGUF file (Llama architecture; F32, F16, BF16, Q4_0, Q4_1, Q8_0 tensors)")
      ->required();
  app.add_option("-o,--output", options->out, "The folder to make")->required();
  app.add_option("--max-shard-size", options->import.max_shard_bytes,
                 "Largest weight file, bytes (5GB, 500MB ...)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_flag("--force", options->import.force, "Replace the output folder if it exists");
  return [options](const Context& context) {
    return ImportGguf(options->gguf, options->out, options->import, context);
  };
}

}  // namespace

extern const Command kImportCommand;
const Command kImportCommand = {"import", Add};

}  // namespace octavo
