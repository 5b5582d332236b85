#include "apps/generation_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace octavo {

void AddGenerationFlags(CLI::App& app, GenerateOptions* options) {
  SamplingParams& sampling = options->sampling;
  app.add_option("-n,--max-tokens", options->max_tokens, "Tokens to generate at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature, "0 takes the most likely token")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "Draw from the k most likely tokens; 0: all")
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p,
                 "Draw from the most likely tokens that reach this probability")
      ->capture_default_str();
  app.add_option("--min-p", sampling.min_p,
                 "Drop tokens less likely than this share of the most likely one")
      ->capture_default_str();
  app.add_option(
         "--repetition-penalty", sampling.repetition_penalty,
         "Divides positive logits of tokens in the prompt or the answer by this, multiplies "
         "others; 1: off")
      ->capture_default_str();
  app.add_option("--frequency-penalty", sampling.frequency_penalty,
                 "Subtracted from a token's logit for each time it is in the answer; 0: off")
      ->capture_default_str();
  app.add_option("--presence-penalty", sampling.presence_penalty,
                 "Subtracted from the logit of a token that is in the answer; 0: off")
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "Seed of the draws")->capture_default_str();
  app.add_option("--stop", options->stop, "End before this text (may be given several times)");
}

std::string SpeedLine(const GenerateResult& result) {
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
  };
  const int64_t read = result.prompt_tokens - result.cached_tokens;
  return fmt::format(
      "prompt {} tokens, {:.0f} tokens/s; answer {} tokens, {:.1f} tokens/s; ended by {}", read,
      rate(read, result.prefill_seconds), result.tokens.size(),
      rate(std::ssize(result.tokens) - 1, result.decode_seconds),
      FinishReasonName(result.finish_reason));
}

}  // namespace octavo
