#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>

#include "apps/command.h"
#include "eval/windows.h"
#include "io/safetensors.h"
#include "runtime/load.h"

namespace octavo {

namespace {

struct Options {
  std::string model;
  std::string input;
  std::string output;
  std::string activation_rule = "engine";
};

Status Run(const Options& options, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const SafetensorsFile input, SafetensorsFile::Open(options.input));
  OCTAVO_ASSIGN_OR_RETURN(const TensorView ids, input.Find("input_ids"));
  if (ids.dtype != DType::kI32 || ids.shape.size() != 2 || ids.elements() == 0) {
    return InvalidArgument(fmt::format("{}: input_ids is {} {}, expected I32 [sequences, tokens]",
                                       options.input, DTypeName(ids.dtype),
                                       ShapeString(ids.shape)));
  }
  LoadOptions load;
  load.prepare.activation_rule =
      options.activation_rule == "library" ? ActivationRule::kLibrary : ActivationRule::kEngine;
  OCTAVO_ASSIGN_OR_RETURN(const auto loaded, LoadModel(options.model, load, context));
  const int64_t rows = ids.shape[0];
  const int64_t length = ids.shape[1];
  const int64_t vocab = loaded->model().spec.vocab_size;
  const Tensor tokens = Tensor::CopyOf(ids);
  Tensor logits(DType::kF32, {rows, length, vocab});
  WindowForward forward(loaded->model(), context);
  context.progress.Start("logits", rows);
  for (int64_t row = 0; row < rows; ++row) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    OCTAVO_RETURN_IF_ERROR(forward.Run(tokens.data<int32_t>().subspan(
        static_cast<size_t>(row * length), static_cast<size_t>(length))));
    for (int64_t first = 0; first < length; first += kLogitRows) {
      const std::span<const float> part =
          forward.Logits(first, std::min(kLogitRows, length - first));
      std::memcpy(logits.mutable_data<float>().data() + (row * length + first) * vocab, part.data(),
                  part.size_bytes());
    }
    context.progress.Advance(1);
  }
  context.progress.Finish();
  return WriteSafetensors(options.output, {{"logits", logits.view()}});
}

CommandBody Add(CLI::App& app) {
  app.description("Logits of given tokens, for tests and comparisons; float32 key/value cache");
  app.footer(
      "Input: input_ids I32 [B, T]. Output: logits F32 [B, T, V]. Each row is a sequence of its "
      "own.");
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "The checkpoint folder")->required();
  app.add_option("--input", options->input, "A safetensors file with input_ids")->required();
  app.add_option("--output", options->output, "The safetensors file to write")->required();
  app.add_option("--activation-rule", options->activation_rule,
                 "Scale of symmetric int8 activations: engine (amax/127: vLLM, SGLang) or library "
                 "(amax/127.5)")
      ->check(CLI::IsMember({"library", "engine"}))
      ->capture_default_str();
  return [options](const Context& context) { return Run(*options, context); };
}

}  // namespace

extern const Command kLogitsCommand;
const Command kLogitsCommand = {"logits", Add};

}  // namespace octavo
