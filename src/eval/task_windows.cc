#include "eval/task_windows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"

namespace octavo {

namespace {

// A request with the token that its last row predicts, in at most `max_length` tokens.
Window ToWindow(FedTokens fed, int64_t max_length) {
  Window window{.tokens = std::move(fed.tokens), .first_scored = fed.first_scored + 1};
  window.tokens.push_back(fed.last);
  if (std::ssize(window.tokens) <= max_length) return window;
  if (window.first_scored > 1) {
    window.tokens.erase(window.tokens.begin());
    --window.first_scored;
  } else {
    window.tokens.pop_back();
  }
  return window;
}

// The index of the right choice.
Result<size_t> RightChoice(const DocumentPrompt& prompt) {
  if (prompt.answer.is_int()) return static_cast<size_t>(prompt.answer.as_int());
  if (prompt.answer.is_string()) {
    const auto found =
        std::find(prompt.choices.begin(), prompt.choices.end(), prompt.answer.as_string());
    if (found != prompt.choices.end()) return static_cast<size_t>(found - prompt.choices.begin());
  }
  return InvalidArgument("its answer is none of its choices");
}

Result<TokenRequest> RightAnswer(const EvaluatedModel& model, const Task& task,
                                 const DocumentPrompt& prompt, bool has_chat_template) {
  size_t right = 0;
  if (task.kind() == TaskKind::kMultipleChoice) {
    OCTAVO_ASSIGN_OR_RETURN(right, RightChoice(prompt));
  }
  if (task.kind() != TaskKind::kGenerate)
    return model.encoder.EncodePair(prompt.ContextOf(right), prompt.continuations[right]);
  const std::string target =
      prompt.target.is_string() ? prompt.target.as_string() : WriteJson(prompt.target);
  return model.encoder.EncodePair(prompt.context,
                                  (has_chat_template ? "" : task.target_delimiter()) + target);
}

Result<std::vector<TokenRequest>> RequestsOf(const EvaluatedModel& model, const Task& task,
                                             const DocumentPrompt& prompt, bool has_chat_template) {
  if (task.kind() == TaskKind::kRolling) {
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<TokenId> tokens,
                            model.encoder.Encode(prompt.context));
    return RollingWindows(tokens, model.encoder.prefix(), model.max_length);
  }
  OCTAVO_ASSIGN_OR_RETURN(TokenRequest request,
                          RightAnswer(model, task, prompt, has_chat_template));
  return std::vector<TokenRequest>{std::move(request)};
}

}  // namespace

Result<std::vector<Window>> TaskWindows(const EvaluatedModel& model, const Task& task,
                                        std::span<const DocumentPrompt> prompts,
                                        bool has_chat_template) {
  std::vector<Window> windows;
  for (const DocumentPrompt& prompt : prompts) {
    const auto in_document = [&](const Status& status) {
      return status.Annotate(fmt::format("task {}, document {}", task.name(), prompt.doc_id));
    };
    const auto requests = RequestsOf(model, task, prompt, has_chat_template);
    if (!requests.ok()) return in_document(requests.status());
    for (const TokenRequest& request : *requests) {
      auto fed = Feed(request, model.max_length);
      if (!fed.ok()) return in_document(fed.status());
      windows.push_back(ToWindow(std::move(fed).value(), model.max_length));
    }
  }
  return windows;
}

}  // namespace octavo
