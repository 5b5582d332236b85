#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "runtime/scheduler.h"

namespace octavo {

Session::Session(const Model& model, const Context& context, DType kv_dtype)
    : pass_(model, context), kv_dtype_(kv_dtype), state_(MakeSequenceState(model, kv_dtype)) {}

Result<std::span<const float>> Session::Feed(std::span<const TokenId> tokens) {
  const int64_t start = state_.length();
  OCTAVO_RETURN_IF_ERROR(
      CheckPromptLength(tokens.empty() ? 0 : start + std::ssize(tokens), pass_.model()));
  OCTAVO_RETURN_IF_ERROR(CheckTokens(tokens, pass_.model()));
  SequenceState* states[] = {&state_};
  std::span<const float> logits;
  Batch batch;
  for (int64_t i = 0; i < std::ssize(tokens); ++i) {
    const bool last = i + 1 == std::ssize(tokens);
    batch.Add(tokens[static_cast<size_t>(i)], 0, start + i, last);
    if (!last && batch.rows() < kPrefillRows) continue;
    batch.lengths.assign(1, start + std::ssize(tokens));
    OCTAVO_RETURN_IF_ERROR(pass_.context().CheckCancelled());
    OCTAVO_ASSIGN_OR_RETURN(logits, pass_.Run(batch, states));
    remembered_.insert(remembered_.end(), batch.tokens.begin(), batch.tokens.end());
    batch.Clear();
  }
  return logits;
}

Result<GenerateResult> Session::Generate(std::span<const TokenId> prompt,
                                         const GenerateOptions& options, const Tokenizer& tokenizer,
                                         const std::function<void(std::string_view)>& on_text) {
  KeepCommonBeginning(prompt);
  Scheduler scheduler(&pass_);
  OCTAVO_RETURN_IF_ERROR(scheduler
                             .Add({.prompt = {prompt.begin(), prompt.end()},
                                   .state = &state_,
                                   .options = options,
                                   .tokenizer = &tokenizer,
                                   .on_text = on_text})
                             .status());
  std::vector<Scheduler::Finished> finished;
  while (finished.empty()) finished = scheduler.Step();
  Result<GenerateResult> result = std::move(finished.front().result);
  if (!result.ok()) {
    Forget();
    return result;
  }
  remembered_.assign(prompt.begin(), prompt.end());
  remembered_.insert(remembered_.end(), result->tokens.begin(), result->tokens.end());
  remembered_.resize(static_cast<size_t>(state_.length()));
  return result;
}

void Session::KeepCommonBeginning(std::span<const TokenId> prompt) {
  if (prompt.empty()) return Forget();
  const auto wanted = prompt.first(prompt.size() - 1);
  const auto same =
      std::mismatch(wanted.begin(), wanted.end(), remembered_.begin(), remembered_.end()).second;
  const int64_t kept = same - remembered_.begin();
  if (!state_.CanTruncate(kept)) return Forget();  // a window has gone on too far
  remembered_.erase(same, remembered_.end());
  state_.Truncate(kept);
}

void Session::Forget() {
  remembered_.clear();
  state_ = MakeSequenceState(pass_.model(), kv_dtype_);
}

}  // namespace octavo
