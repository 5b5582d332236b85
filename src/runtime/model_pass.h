// One pass of a batch of new tokens through a whole loaded model.
#pragma once

#include <span>
#include <vector>

#include "base/context.h"
#include "base/status.h"
#include "model/forward.h"
#include "text/token_id.h"

namespace octavo {

class ModelPass {
 public:
  // `model` and `context` outlive the object.
  ModelPass(const Model& model, const Context& context);

  // Embed, every block, head. The states grow by the batch's rows; the result, [wanted rows,
  // vocab], may be changed and is valid until the next call. InvalidArgument for a token outside
  // the vocabulary; then no state has grown.
  Result<std::span<float>> Run(const Batch& batch, std::span<SequenceState* const> states);

  const Model& model() const { return model_; }
  const Context& context() const { return context_; }

 private:
  const Model& model_;
  const Context& context_;
  Forward forward_;
  std::vector<float> hidden_;
  std::vector<float> logits_;
};

// InvalidArgument, with the remedy, when a prompt has no token or more than the model has
// positions.
Status CheckPromptLength(int64_t tokens, const Model& model);

// InvalidArgument for a token outside the vocabulary.
Status CheckTokens(std::span<const TokenId> tokens, const Model& model);

}  // namespace octavo
