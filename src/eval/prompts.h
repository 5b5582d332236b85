// What a model is asked: a task's documents as contexts and continuations, with examples, chat
// template and system instruction, character for character as lm-evaluation-harness writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "eval/task.h"
#include "text/chat_template.h"

namespace octavo {

struct PromptOptions {
  std::string system_instruction = {};
  const ChatTemplate* chat_template = nullptr;  // null: plain text
  bool fewshot_as_multiturn = true;             // with a template: examples are turns of their own
  uint64_t fewshot_seed = 1234;
};

// What is asked about one document.
struct DocumentPrompt {
  int64_t doc_id = 0;  // index into the task's documents
  Value target = {};   // an index into the choices, or a text
  Value answer = {};   // the right choice: the target, or where that follows each choice, the index
  std::string context = {};
  // Where the choices are the questions: the context of each continuation; the first is `context`.
  std::vector<std::string> contexts = {};
  // Multiple choice: each choice with what stands in front of it; log-likelihood: the target.
  // Rolling (the context is the text to be scored) and generation have none.
  std::vector<std::string> continuations = {};
  std::vector<std::string> choices = {};  // as the document has them

  const std::string& ContextOf(size_t continuation) const {
    return contexts.empty() ? context : contexts[continuation];
  }
};

// Of the first `limit` documents; the examples of each depend on how many were before it.
// InvalidArgument names the task and document.
Result<std::vector<DocumentPrompt>> BuildPrompts(const Task& task, int64_t limit,
                                                 const PromptOptions& options);

}  // namespace octavo
