#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/command.h"
#include "convert/resave.h"

namespace octavo {

namespace {

struct Options {
  std::string checkpoint;
  std::string out;
  ResaveOptions resave;
};

CommandBody Add(CLI::App& app) {
  app.description(
      "Re-save a GPTQ, AWQ or FP8 checkpoint of another tool in compressed-tensors format");
  app.footer(
      "Reads what AutoGPTQ and GPTQModel (quant_method gptq: 2, 3, 4, 8 bits, v1 and v2), AutoAWQ\n"
      "(awq, version gemm) and FP8 publishers (fp8: block scales or one a tensor) write. Codes, "
      "scales\n"
      "and zero points are kept to the bit, so the model computes the same; integers become\n"
      "pack-quantized, FP8 float-quantized. Such checkpoints also run as they are.\n"
      "\n"
      "  octavo convert Model-GPTQ -o Model-W4A16\n"
      "  octavo generate Model-W4A16 -p \"Hello\"");
  auto options = std::make_shared<Options>();
  app.add_option("checkpoint", options->checkpoint, "The checkpoint's folder")->required();
  app.add_option("-o,--output", options->out, "The folder to make")->required();
  app.add_option("--max-shard-size", options->resave.max_shard_bytes,
                 "Largest weight file, bytes (5GB, 500MB ...)")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_flag(
      "--keep-group-order", options->resave.keep_group_order,
      "Write weight_g_idx where GPTQ scattered the columns of a group (desc_act): Octavo and "
      "older releases of vLLM run it, compressed-tensors from 0.19 on refuses it");
  app.add_flag("--force", options->resave.force, "Replace the output folder if it exists");
  return [options](const Context& context) {
    return ResaveCheckpoint(options->checkpoint, options->out, options->resave, context);
  };
}

}  // namespace

extern const Command kConvertCommand;
const Command kConvertCommand = {"convert", Add};

}  // namespace octavo
