// What a request for text asks, and what comes of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "runtime/sampler.h"
#include "text/token_id.h"

namespace octavo {

struct GenerateOptions {
  SamplingParams sampling = {};
  int64_t max_tokens = 256;
  std::vector<TokenId> eos_tokens = {};  // end of generation; not part of the text
  std::vector<std::string> stop = {};    // generation ends before any of these
  bool want_logprobs = false;            // fill GenerateResult::logprobs ...
  int64_t top_logprobs = 0;              // ... with as many of the most likely tokens
};

enum class FinishReason : uint8_t { kEos, kStop, kLength, kCancelled };
std::string_view FinishReasonName(FinishReason reason);

struct GenerateResult {
  std::vector<TokenId> tokens;
  std::vector<TokenLogprob> logprobs;  // of each token, where they were asked for
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;   // the first of them, which were remembered and not computed again
  double prefill_seconds = 0;  // from the start to the first logits
  double decode_seconds = 0;   // of the tokens after the first
};

// The end-of-generation tokens of a checkpoint: "eos_token_id" (a number or a list) of
// generation_config.json, else of config.json.
Result<std::vector<TokenId>> ReadEosTokens(const std::filesystem::path& folder,
                                           const Value& config);

}  // namespace octavo
