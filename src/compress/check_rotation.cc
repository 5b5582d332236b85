#include "compress/check_rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/forward.h"
#include "runtime/states.h"

namespace octavo {

namespace {

// Final logits of a few tokens, all over the vocabulary.
class LogitsOfTokens {
 public:
  LogitsOfTokens(LoadedModel* model, const Context& context) : model_(model), context_(context) {}

  Result<std::vector<float>> Run() {
    constexpr int64_t kTokens = 16;
    const ModelSpec& spec = model_->model().spec;
    Batch batch;
    for (int64_t i = 0; i < kTokens; ++i)
      batch.Add(static_cast<int32_t>(i * (spec.vocab_size - 1) / (kTokens - 1)), 0, i, true);
    OCTAVO_RETURN_IF_ERROR(model_->LoadEnds(context_));
    Forward forward(model_->model(), context_);
    SequenceState state = MakeSequenceState(model_->model(), DType::kF32);
    SequenceState* const states[] = {&state};
    std::vector<float> hidden(static_cast<size_t>(batch.rows() * spec.hidden_size));
    OCTAVO_RETURN_IF_ERROR(forward.Embed(batch, hidden));
    for (int64_t i = 0; i < spec.num_layers; ++i) {
      OCTAVO_RETURN_IF_ERROR(context_.CheckCancelled());
      OCTAVO_RETURN_IF_ERROR(model_->LoadBlock(i, context_));
      forward.Block(i, batch, states, hidden);
      model_->ReleaseBlock(i);
    }
    std::vector<float> logits(static_cast<size_t>(batch.rows() * spec.vocab_size));
    forward.Head(batch, hidden, logits);
    model_->ReleaseEnds();
    return logits;
  }

 private:
  LoadedModel* model_;
  const Context& context_;
};

}  // namespace

Result<double> RotationError(LoadedModel* original, LoadedModel* rotated, const Context& context) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<float> expected,
                          LogitsOfTokens(original, context).Run());
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<float> found, LogitsOfTokens(rotated, context).Run());
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(expected[i])));
    const auto one = std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    // NaN counts as the largest.
    difference = one <= difference ? difference : one;
  }
  return difference / largest;
}

Status CheckRotation(const std::filesystem::path& folder, const LoadOptions& options,
                     LoadedModel* rotated, const Context& context) {
  // Storing as bf16 what stays unquantized costs about 1e-2; what does not cancel costs all.
  constexpr double kLargestError = 5e-2;
  const Context quiet{.pool = context.pool, .isa = context.isa, .cancelled = context.cancelled};
  OCTAVO_ASSIGN_OR_RETURN(const auto original, LoadModel(folder, options, quiet));
  OCTAVO_ASSIGN_OR_RETURN(const double error, RotationError(original.get(), rotated, quiet));
  context.log.Info(fmt::format("rotated, the model computes what it did within {:.1e}", error));
  if (error <= kLargestError) return OkStatus();
  return InvalidArgument(
      fmt::format("{}: after the recipe's rotations the largest logit is off by {:.2g} of itself, "
                  "so they do not cancel; leave transform_config and mappings out",
                  folder.string(), error));
}

}  // namespace octavo
