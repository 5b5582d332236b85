// What a request for text asks, and what comes of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octavo/sampling_params.h"

namespace octavo {

// How likely a token was, and which were likelier: natural logarithms of the model's own
// probabilities, before penalties and temperature.
struct TokenLogprob {
  struct Entry {
    int32_t token;
    double logprob;
  };
  double logprob = 0;      // of the token that was chosen
  std::vector<Entry> top;  // the most likely ones, falling, ties by token
};

struct GenerateOptions {
  SamplingParams sampling = {};
  int64_t max_tokens = 256;
  std::vector<int32_t> eos_tokens = {};  // end of generation; not part of the text
  std::vector<std::string> stop = {};    // generation ends before any of these
  bool want_logprobs = false;            // fill GenerateResult::logprobs ...
  int64_t top_logprobs = 0;              // ... with as many of the most likely tokens
};

enum class FinishReason : uint8_t { kEos, kStop, kLength, kCancelled };
std::string_view FinishReasonName(FinishReason reason);

struct GenerateResult {
  std::vector<int32_t> tokens;
  std::vector<TokenLogprob> logprobs;  // of each token, where they were asked for
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;   // the first of them, which were remembered and not computed again
  double prefill_seconds = 0;  // from the start to the first logits
  double decode_seconds = 0;   // of the tokens after the first
};

}  // namespace octavo
