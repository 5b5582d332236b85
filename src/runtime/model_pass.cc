#include "runtime/model_pass.h"

#include <fmt/format.h>

namespace octavo {

ModelPass::ModelPass(const Model& model, const Context& context)
    : model_(model), context_(context), forward_(model, context) {}

Result<std::span<float>> ModelPass::Run(const Batch& batch,
                                        std::span<SequenceState* const> states) {
  const ModelSpec& spec = model_.spec;
  hidden_.resize(static_cast<size_t>(batch.rows() * spec.hidden_size));
  logits_.resize(static_cast<size_t>(batch.wanted_rows() * spec.vocab_size));
  OCTAVO_RETURN_IF_ERROR(forward_.Embed(batch, hidden_));
  for (int64_t block = 0; block < spec.num_layers; ++block)
    forward_.Block(block, batch, states, hidden_);
  if (!logits_.empty()) forward_.Head(batch, hidden_, logits_);
  return std::span<float>(logits_);
}

Status CheckPromptLength(int64_t tokens, const Model& model) {
  if (tokens == 0) return InvalidArgument("there is nothing to continue: the prompt has no token");
  if (tokens <= model.spec.max_positions) return OkStatus();
  return InvalidArgument(fmt::format(
      "{} tokens are more than the model's {} positions (max_position_embeddings); shorten the "
      "prompt or the conversation, or use a model with a longer context",
      tokens, model.spec.max_positions));
}

Status CheckTokens(std::span<const TokenId> tokens, const Model& model) {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < model.spec.vocab_size) continue;
    return InvalidArgument(
        fmt::format("token {} is outside the vocabulary of {}", token, model.spec.vocab_size));
  }
  return OkStatus();
}

}  // namespace octavo
