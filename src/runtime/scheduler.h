// Many requests at once: all that run advance together, newcomers join and finished ones leave at
// any step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/generation.h"
#include "runtime/model_pass.h"
#include "runtime/text_stream.h"
#include "text/tokenizer.h"

namespace octavo {

struct Request {
  // The whole text to continue. `state` (borrowed, grows) remembers its first state->length()
  // tokens, fewer than all; they are not computed again.
  std::vector<TokenId> prompt = {};
  SequenceState* state = nullptr;
  GenerateOptions options = {};
  // Borrowed. Null: only tokens are wanted, no text (and there are no stop strings).
  const Tokenizer* tokenizer = nullptr;
  // Gets each piece of text as it becomes certain. May be empty.
  std::function<void(std::string_view)> on_text = {};
};

// Continuous batching. A step runs one more token of every request whose prompt is done, and the
// next pieces of prompts that are not, oldest first. What a request gets does not depend on what
// runs beside it, to the last bit: a prompt is cut into the same pieces and each piece is a pass of
// its own, and running sequences share passes of at most kDecodeRows rows, up to which every matmul
// computes a row the same way however many there are.
class Scheduler {
 public:
  // Rows of a pass over running sequences: more of them at once are no faster.
  static constexpr int64_t kDecodeRows = 32;

  using RequestId = int64_t;
  struct Finished {
    RequestId id;
    Result<GenerateResult> result;
  };

  // `pass` outlives the scheduler.
  explicit Scheduler(ModelPass* pass);
  ~Scheduler();

  // InvalidArgument names what is wrong with the request: its sampling parameters, a prompt that is
  // empty or longer than the model's positions, a token outside the vocabulary.
  Result<RequestId> Add(Request request);
  // The request ends at the next step, with what there is. Unknown ids (finished ones) are ignored.
  void Cancel(RequestId id);
  bool idle() const { return running_.empty(); }

  // One step; returns the requests that ended in it. A request alone fails when its logits are
  // damaged. A cancelled context ends all of them, with what there is.
  std::vector<Finished> Step();

 private:
  // Rows of a piece of a prompt.
  static constexpr int64_t kPromptRows = 512;

  struct Running;

  // One more token of each of these, in one pass / the next piece of a prompt.
  void Decode(std::span<Running* const> group);
  void Prefill(Running* running);
  // Runs batch_ and chooses the next token of each of the group from its row of logits.
  void RunAndChoose(std::span<Running* const> group);

  ModelPass& pass_;
  std::vector<std::unique_ptr<Running>> running_;  // in order of arrival
  RequestId next_id_ = 0;
  Batch batch_;
  std::vector<SequenceState*> states_;
};

}  // namespace octavo
