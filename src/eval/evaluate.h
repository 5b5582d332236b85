// One task, evaluated: its requests run through a model, each document is scored, and the scores
// become figures with their errors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/context.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/value.h"
#include "eval/answer_journal.h"
#include "eval/prompts.h"
#include "eval/task.h"
#include "eval/token_requests.h"
#include "model/graph.h"

namespace octavo {

// What a task is run with.
struct EvaluatedModel {
  const Model& model;
  const Tokenizer& tokenizer;
  const RequestEncoder& encoder;
  int64_t max_length;               // tokens that the model sees at once
  std::vector<TokenId> eos_tokens;  // end an answer
  std::string eos_text;             // the EOS token's text, one more stop string
};

struct EvalOptions {
  PromptOptions prompts = {};
  int64_t limit = 0;  // documents of each task; 0: all
  // Answers that are generated together; nothing: as many as `free_memory` holds.
  std::optional<int64_t> batch_size = std::nullopt;
  // Bytes, asked when a task begins; nothing: not known.
  std::function<std::optional<int64_t>()> free_memory = [] { return FreeMemory(); };
  int64_t bootstrap_iterations = 100'000;
};

// One document, behind one filter.
struct DocumentScore {
  std::vector<std::string> filtered;  // texts, where the task generates
  // Metric and value: a number, or [log-likelihood, weight].
  std::vector<std::pair<std::string, Value>> metrics;
};

struct MetricFigure {
  std::string metric;
  std::string filter;
  double value = 0;
  std::optional<double> error;  // standard error of the value
};

struct TaskResult {
  std::vector<DocumentPrompt> prompts;
  std::vector<std::vector<RequestAnswer>> answers;  // of each document, of each of its requests
  std::vector<std::vector<DocumentScore>> scores;   // of each filter, of each document
  std::vector<MetricFigure> figures;                // of each filter, of each metric
  int64_t truncated = 0;                            // requests of which the model saw only the end
  int64_t empty = 0;                                // answers without a text
  int64_t batch_size = 0;                           // answers generated together; 0: none were
  double seconds = 0;
};

// Errors name the task and document; NaN names the block of the model. What `journal` (may be null)
// has is not computed again, what is computed goes there; the result is the same, to the last bit.
Result<TaskResult> Evaluate(const EvaluatedModel& model, const Task& task,
                            const EvalOptions& options, AnswerJournal* journal,
                            const Context& context);

// The scores of one document behind one filter, by the task's metrics.
Result<DocumentScore> ScoreDocument(const Task& task, const DocumentPrompt& prompt,
                                    const std::vector<RequestAnswer>& answers,
                                    const AnswerFilter& filter);

}  // namespace octavo
