// Quantizes a checkpoint to W8A8 INT8 and lets the result continue a text.
//   quantize_and_ask MODEL OUT TEXT
#include <octavo/llm.h>
#include <octavo/quantize.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: quantize_and_ask MODEL OUT TEXT\n"), 2;

  octavo::Environment environment;
  environment.on_progress = [](std::string_view work, int64_t done, int64_t total) {
    std::fprintf(stderr, "%.*s %d of %d\n", static_cast<int>(work.size()), work.data(),
                 static_cast<int>(done), static_cast<int>(total));
  };
  octavo::QuantizeOptions options{.model = argv[1], .out = argv[2]};
  const char* recipe =
      "quant_stage: {quant_modifiers: {QuantizationModifier: "
      "{scheme: W8A8, targets: [Linear], ignore: [lm_head]}}}";
  const auto report = octavo::Quantize(options, recipe, environment);
  if (!report.ok()) return std::fprintf(stderr, "%s\n", report.status().ToString().c_str()), 1;
  std::printf("%zu layers, %.2f MB -> %.2f MB\n", report->layers.size(), report->source_bytes / 1e6,
              report->output_bytes / 1e6);

  auto llm = octavo::LLM::Load(argv[2]);
  if (!llm.ok()) return std::fprintf(stderr, "%s\n", llm.status().ToString().c_str()), 1;
  const auto answer = llm->Generate(argv[3], {.max_tokens = 40}, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
  });
  if (!answer.ok()) return std::fprintf(stderr, "%s\n", answer.status().ToString().c_str()), 1;
  std::printf("\n%zu tokens\n", answer->tokens.size());
}
