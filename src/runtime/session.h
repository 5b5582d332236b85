// One conversation with a model: a prompt goes in, tokens come out, one after another.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "runtime/generation.h"
#include "runtime/model_pass.h"
#include "runtime/states.h"
#include "text/tokenizer.h"

namespace octavo {

class Session {
 public:
  // Borrows everything; `kv_dtype` is the element type of the cache.
  Session(const Model& model, const Context& context, DType kv_dtype);

  // Runs new tokens behind those it remembers, in pieces of at most kPrefillRows rows, and returns
  // the last row's logits [vocab]. InvalidArgument when the model's positions would be exceeded.
  Result<std::span<const float>> Feed(std::span<const TokenId> tokens);

  // Continues `prompt`, the whole text: as much of its beginning as is remembered is not computed
  // again, what is remembered beyond that is forgotten. `on_text` gets each piece of text as it
  // becomes certain (never half a character, never part of a stop string). A cancelled context ends
  // the generation, with what there is.
  Result<GenerateResult> Generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                  const Tokenizer& tokenizer,
                                  const std::function<void(std::string_view)>& on_text);

  const SequenceState& state() const { return state_; }

 private:
  static constexpr int64_t kPrefillRows = 512;

  // Forgets what is not the beginning of `prompt`, and its last token, whose logits are wanted.
  void KeepCommonBeginning(std::span<const TokenId> prompt);
  void Forget();

  ModelPass pass_;
  DType kv_dtype_;
  SequenceState state_;
  std::vector<TokenId> remembered_;  // the tokens that state_ is of
};

}  // namespace octavo
