#include "eval/answers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "eval/scorer.h"
#include "runtime/scheduler.h"
#include "runtime/session.h"
#include "runtime/states.h"

namespace octavo {

namespace {

// Tokens from which on a common beginning is worth keeping a state of.
constexpr int64_t kMinShared = 32;

// What all prompts begin with, short of the last token of each.
std::span<const TokenId> CommonBeginning(std::span<const std::vector<TokenId>> prompts) {
  std::span<const TokenId> common = prompts.front();
  for (const std::vector<TokenId>& prompt : prompts) {
    const auto same =
        std::mismatch(common.begin(), common.end(), prompt.begin(), prompt.end() - 1).first;
    common = common.first(static_cast<size_t>(same - common.begin()));
  }
  return common;
}

class AnswerBatch {
 public:
  AnswerBatch(const Model& model, std::span<const std::vector<TokenId>> prompts,
              const Context& context)
      : model_(model),
        prompts_(prompts),
        pass_(model, context),
        scheduler_(&pass_),
        shared_(model, context, DType::kF32) {}

  Status ShareBeginning() {
    if (prompts_.size() < 2 || model_.spec.depends_on_length()) return OkStatus();
    const std::span<const TokenId> common = CommonBeginning(prompts_);
    if (std::ssize(common) < kMinShared) return OkStatus();
    return shared_.Feed(common).status();
  }

  Status Add(size_t index, Request request) {
    auto state = std::make_unique<SequenceState>(shared_.state().length() > 0
                                                     ? shared_.state().Fork()
                                                     : MakeSequenceState(model_, DType::kF32));
    request.state = state.get();
    OCTAVO_ASSIGN_OR_RETURN(const Scheduler::RequestId id, scheduler_.Add(std::move(request)));
    running_[id] = {index, std::move(state)};
    return OkStatus();
  }

  // One step; hands on the answers that ended in it.
  Status Step(const std::function<Status(size_t, std::string)>& take) {
    for (Scheduler::Finished& finished : scheduler_.Step()) {
      const auto running = running_.find(finished.id);
      if (!finished.result.ok()) return NameBlock(running->second.first, finished.result.status());
      // A cancelled answer is cut and is none.
      if (finished.result->finish_reason == FinishReason::kCancelled)
        return Cancelled("stopped on request");
      OCTAVO_RETURN_IF_ERROR(take(running->second.first, std::move(finished.result->text)));
      running_.erase(running);
    }
    return OkStatus();
  }

  int64_t size() const { return std::ssize(running_); }

 private:
  // A pass sees only that logits are damaged; scoring the prompt says where, if it is there.
  Status NameBlock(size_t index, const Status& status) {
    if (status.code() != StatusCode::kInvalidArgument) return status;
    const std::vector<TokenId>& prompt = prompts_[index];
    const FedTokens fed{prompt, prompt.back(), std::ssize(prompt) - 1, /*truncated=*/false};
    const Status scored = Scorer(model_, pass_.context()).Score({&fed, 1}).status();
    return scored.ok() ? status : scored;
  }

  const Model& model_;
  std::span<const std::vector<TokenId>> prompts_;
  ModelPass pass_;
  Scheduler scheduler_;
  Session shared_;
  std::map<Scheduler::RequestId, std::pair<size_t, std::unique_ptr<SequenceState>>> running_;
};

}  // namespace

Status GenerateAnswers(const Model& model, const Tokenizer& tokenizer,
                       std::span<const std::vector<TokenId>> prompts,
                       std::span<const size_t> wanted, const GenerateOptions& options,
                       int64_t batch_size, const Context& context,
                       const std::function<Status(size_t index, std::string text)>& take) {
  if (wanted.empty()) return OkStatus();
  std::vector<size_t> order(wanted.begin(), wanted.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return prompts[a].size() > prompts[b].size(); });
  AnswerBatch batch(model, prompts, context);
  OCTAVO_RETURN_IF_ERROR(batch.ShareBeginning());
  size_t next = 0;
  while (next < order.size() || batch.size() > 0) {
    OCTAVO_RETURN_IF_ERROR(context.CheckCancelled());
    for (; next < order.size() && batch.size() < batch_size; ++next) {
      OCTAVO_RETURN_IF_ERROR(
          batch.Add(order[next],
                    {.prompt = prompts[order[next]], .options = options, .tokenizer = &tokenizer}));
    }
    OCTAVO_RETURN_IF_ERROR(batch.Step(take));
  }
  return OkStatus();
}

}  // namespace octavo
