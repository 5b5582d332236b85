// One conversation with a model: a prompt goes in, tokens come out, one after another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/forward.h"
#include "runtime/sampler.h"
#include "runtime/states.h"
#include "text/tokenizer.h"

namespace octavo {

struct GenerateOptions {
  SamplingParams sampling = {};
  int64_t max_tokens = 256;
  std::vector<TokenId> eos_tokens = {};  // end of generation; not part of the text
  std::vector<std::string> stop = {};    // generation ends before any of these
};

enum class FinishReason : uint8_t { kEos, kStop, kLength, kCancelled };
std::string_view FinishReasonName(FinishReason reason);

struct GenerateResult {
  std::vector<TokenId> tokens;
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0;
  double decode_seconds = 0;  // of the tokens after the first
};

// The end-of-generation tokens of a checkpoint: "eos_token_id" (a number or a list) of
// generation_config.json, else of config.json.
Result<std::vector<TokenId>> ReadEosTokens(const std::filesystem::path& folder,
                                           const Value& config);

class Session {
 public:
  // Borrows everything; `kv_dtype` is the element type of the cache.
  Session(const Model& model, const Context& context, DType kv_dtype);

  // Runs new tokens behind those it remembers, in pieces of at most kPrefillRows rows, and returns
  // the last row's logits [vocab]. InvalidArgument when the model's positions would be exceeded.
  Result<std::span<const float>> Feed(std::span<const TokenId> tokens);

  // Feeds `prompt` and continues it. `on_text` gets each piece of text as it becomes certain (never
  // half a character, never part of a stop string). A cancelled context ends the generation, with
  // what there is.
  Result<GenerateResult> Generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                  const Tokenizer& tokenizer,
                                  const std::function<void(std::string_view)>& on_text);

  const SequenceState& state() const { return state_; }

 private:
  static constexpr int64_t kPrefillRows = 512;

  const Model& model_;
  const Context& context_;
  Forward forward_;
  SequenceState state_;
  std::vector<float> hidden_;
  std::vector<float> logits_;
};

}  // namespace octavo
