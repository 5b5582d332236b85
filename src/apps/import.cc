#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

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
      "Turn a GGUF file into a Hugging Face folder: weights, config, tokenizer, chat template");
  auto options = std::make_shared<Options>();
  app.add_option(
         "gguf", options->gguf,
         "The GGUF file (architecture llama, which is Mistral's too, qwen2 or qwen3; tensors of "
         "any type that files are published in)")
      ->required();
  app.add_option("-o,--output", options->out, "The folder to make")->required();
  app.add_option("--max-shard-size", options->import.max_shard_bytes,
                 "Largest weight file, bytes (5GB, 500MB ...)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_option(
         "--dtype", options->import.dtype,
         "Weights as float32, float16 or bfloat16 (default: float32 or float16 where all of "
         "the file's matrices are that, else bfloat16)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, DType>{
          {"float32", DType::kF32}, {"float16", DType::kF16}, {"bfloat16", DType::kBF16}}));
  app.add_flag("--force", options->import.force, "Replace the output folder if it exists");
  return [options](const Context& context) {
    return ImportGguf(options->gguf, options->out, options->import, context);
  };
}

}  // namespace

extern const Command kImportCommand;
const Command kImportCommand = {"import", Add};

}  // namespace octavo
