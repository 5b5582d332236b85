#include "eval/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "eval/answers.h"
#include "eval/batch_size.h"
#include "eval/metric_values.h"
#include "eval/scorer.h"
#include "text/unicode.h"

namespace octavo {

namespace {

constexpr int64_t kDefaultNewTokens = 256;
// Documents that are scored together; articles fill passes by themselves.
constexpr size_t kScoredDocuments = 64;
constexpr size_t kRollingDocuments = 4;
// What lm-eval writes as the figure of what is not scored.
constexpr double kBypass = 999;

class TaskRun {
 public:
  TaskRun(const EvaluatedModel& model, const Task& task, const EvalOptions& options,
          AnswerJournal* journal, const Context& context)
      : model_(model), task_(task), options_(options), journal_(journal), context_(context) {}

  Result<TaskResult> Run() {
    const auto start = std::chrono::steady_clock::now();
    const int64_t limit = options_.limit > 0 ? options_.limit : std::ssize(task_.documents());
    OCTAVO_ASSIGN_OR_RETURN(result_.prompts, BuildPrompts(task_, limit, options_.prompts));
    result_.answers.resize(result_.prompts.size());
    const Status status = RunRequests();
    context_.progress.Finish();
    OCTAVO_RETURN_IF_ERROR(status);
    OCTAVO_RETURN_IF_ERROR(ScoreAll());
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  Status RunRequests() {
    switch (task_.kind()) {
      case TaskKind::kMultipleChoice:
      case TaskKind::kLoglikelihood:
        OCTAVO_RETURN_IF_ERROR(EncodePairs());
        return RunScored(kScoredDocuments);
      case TaskKind::kRolling:
        OCTAVO_RETURN_IF_ERROR(EncodeWindows());
        return RunScored(kRollingDocuments);
      case TaskKind::kGenerate:
        return RunGenerations();
    }
    return Internal("no such kind of task");
  }

  // Takes a request of the latest document up to be scored.
  Status AddFed(const TokenRequest& request) {
    OCTAVO_ASSIGN_OR_RETURN(FedTokens fed, Feed(request, model_.max_length));
    result_.truncated += fed.truncated ? 1 : 0;
    fed_.back().push_back(std::move(fed));
    return OkStatus();
  }

  Status InDocument(const Status& status, int64_t doc_id) const {
    return status.Annotate(fmt::format("task {}, document {}", task_.name(), doc_id));
  }

  Status EncodePairs() {
    for (const DocumentPrompt& prompt : result_.prompts) {
      fed_.emplace_back();
      for (size_t i = 0; i < prompt.continuations.size(); ++i) {
        const auto request =
            model_.encoder.EncodePair(prompt.ContextOf(i), prompt.continuations[i]);
        const Status status = request.ok() ? AddFed(*request) : request.status();
        if (!status.ok()) return InDocument(status, prompt.doc_id);
      }
    }
    return OkStatus();
  }

  Status EncodeWindows() {
    for (const DocumentPrompt& prompt : result_.prompts) {
      fed_.emplace_back();
      const auto tokens = model_.encoder.Encode(prompt.context);
      if (!tokens.ok()) return InDocument(tokens.status(), prompt.doc_id);
      for (const TokenRequest& window :
           RollingWindows(*tokens, model_.encoder.prefix(), model_.max_length)) {
        const Status status = AddFed(window);
        if (!status.ok()) return InDocument(status, prompt.doc_id);
      }
    }
    return OkStatus();
  }

  // Whether the journal has a document's answers, which are then taken.
  bool TakeKnown(size_t doc) {
    if (journal_ == nullptr) return false;
    const auto* known = journal_->Find(task_.name(), result_.prompts[doc].doc_id);
    if (known == nullptr) return false;
    result_.answers[doc] = *known;
    return true;
  }

  Status Keep(size_t doc) {
    if (journal_ == nullptr) return OkStatus();
    return journal_->Add(task_.name(), result_.prompts[doc].doc_id, result_.answers[doc]);
  }

  // Fixed pieces of documents, each by itself: so a run that goes on computes what it would have.
  Status RunScored(size_t piece) {
    context_.progress.Start(task_.name(), std::ssize(fed_));
    Scorer scorer(model_.model, context_);
    for (size_t first = 0; first < fed_.size(); first += piece) {
      const size_t last = std::min(first + piece, fed_.size());
      bool known = true;
      for (size_t doc = first; doc < last; ++doc) known = TakeKnown(doc) && known;
      if (!known) {
        const Status status = ScorePiece(first, last, &scorer);
        if (!status.ok()) return status.Annotate("task " + task_.name());
      }
      context_.progress.Advance(static_cast<int64_t>(last - first));
    }
    return OkStatus();
  }

  Status ScorePiece(size_t first, size_t last, Scorer* scorer) {
    std::vector<FedTokens> requests;
    for (size_t doc = first; doc < last; ++doc)
      requests.insert(requests.end(), fed_[doc].begin(), fed_[doc].end());
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Loglikelihood> scores, scorer->Score(requests));
    size_t next = 0;
    for (size_t doc = first; doc < last; ++doc) {
      std::vector<RequestAnswer>& answers = result_.answers[doc];
      answers.clear();
      for (size_t i = 0; i < fed_[doc].size(); ++i, ++next)
        answers.push_back({scores[next].sum, scores[next].is_greedy});
      if (task_.kind() == TaskKind::kRolling) {
        RequestAnswer sum;
        for (const RequestAnswer& window : answers) sum.loglikelihood += window.loglikelihood;
        answers.assign(1, sum);
      }
      OCTAVO_RETURN_IF_ERROR(Keep(doc));
    }
    return OkStatus();
  }

  // As "generation_kwargs" ask.
  Result<GenerateOptions> ReadGeneration() const {
    const Value& kwargs = task_.generation();
    GenerateOptions generate;
    generate.eos_tokens = model_.eos_tokens;
    generate.max_tokens = kDefaultNewTokens;
    for (const char* key :
         {"max_completion_tokens", "max_tokens", "max_new_tokens", "max_gen_toks"}) {
      OCTAVO_ASSIGN_OR_RETURN(generate.max_tokens, kwargs.GetInt(key, generate.max_tokens));
    }
    const Value* until = kwargs.Find("until");
    if (until != nullptr && until->is_string()) generate.stop.push_back(until->as_string());
    if (until != nullptr && until->is_array()) {
      for (const Value& stop : until->as_array()) {
        if (stop.is_string()) generate.stop.push_back(stop.as_string());
      }
    }
    if (!model_.eos_text.empty()) generate.stop.push_back(model_.eos_text);
    OCTAVO_ASSIGN_OR_RETURN(const double temperature, kwargs.GetDouble("temperature", 0));
    OCTAVO_ASSIGN_OR_RETURN(const bool sample, kwargs.GetBool("do_sample", temperature > 0));
    if (!sample) return generate;
    generate.sampling.temperature = temperature > 0 ? temperature : 1;
    OCTAVO_ASSIGN_OR_RETURN(generate.sampling.top_p, kwargs.GetDouble("top_p", 1));
    OCTAVO_ASSIGN_OR_RETURN(generate.sampling.top_k, kwargs.GetInt("top_k", 50));
    return generate;
  }

  // As asked, or by memory; which is told, as it is what the machine has, not what was asked for.
  int64_t BatchSize(const std::vector<std::vector<TokenId>>& prompts, int64_t new_tokens) const {
    if (options_.batch_size) return *options_.batch_size;
    int64_t longest = 1;
    for (const std::vector<TokenId>& prompt : prompts)
      longest = std::max(longest, std::ssize(prompt));
    const int64_t each = AnswerBytes(model_.model, longest + new_tokens);
    const std::optional<int64_t> free = options_.free_memory();
    const int64_t size =
        std::min(BatchSizeFor(each, free), std::max<int64_t>(1, std::ssize(prompts)));
    constexpr double kMega = 1e6;
    context_.log.Info(
        fmt::format("{}: {} answers at a time; each takes up to {:.0f} MB, {}", task_.name(), size,
                    static_cast<double>(each) / kMega,
                    free ? fmt::format("{:.0f} MB are free", static_cast<double>(*free) / kMega)
                         : std::string("free memory is not known")));
    return size;
  }

  Status RunGenerations() {
    const auto generate = ReadGeneration();
    if (!generate.ok()) return generate.status().Annotate("task " + task_.name());
    const int64_t room = model_.max_length - generate->max_tokens;
    if (room < 1) {
      return InvalidArgument(fmt::format(
          "task {}: {} new tokens leave no room for a prompt in the model's {} positions",
          task_.name(), generate->max_tokens, model_.max_length));
    }
    std::vector<std::vector<TokenId>> prompts;
    for (const DocumentPrompt& prompt : result_.prompts) {
      auto tokens = model_.encoder.Encode(prompt.context);
      if (!tokens.ok()) return InDocument(tokens.status(), prompt.doc_id);
      if (const int64_t excess = std::ssize(*tokens) - room; excess > 0) {
        tokens->erase(tokens->begin(), tokens->begin() + excess);
        ++result_.truncated;
      }
      prompts.push_back(std::move(tokens).value());
    }
    result_.batch_size = BatchSize(prompts, generate->max_tokens);
    context_.progress.Start(task_.name(), std::ssize(prompts));
    std::vector<size_t> wanted;
    for (size_t doc = 0; doc < prompts.size(); ++doc) {
      if (!TakeKnown(doc)) wanted.push_back(doc);
    }
    context_.progress.Advance(std::ssize(prompts) - std::ssize(wanted));
    const Status status =
        GenerateAnswers(model_.model, model_.tokenizer, prompts, wanted, *generate,
                        result_.batch_size, context_, [&](size_t doc, std::string text) {
                          context_.progress.Advance(1);
                          result_.answers[doc] = {{.text = std::move(text)}};
                          return Keep(doc);
                        });
    for (const std::vector<RequestAnswer>& answers : result_.answers)
      result_.empty += !answers.empty() && answers.front().text.empty() ? 1 : 0;
    return status.Annotate("task " + task_.name());
  }

  Status ScoreAll() {
    for (const AnswerFilter& filter : task_.filters()) {
      std::vector<DocumentScore>& scores = result_.scores.emplace_back();
      for (size_t doc = 0; doc < result_.prompts.size(); ++doc) {
        Result<DocumentScore> score =
            ScoreDocument(task_, result_.prompts[doc], result_.answers[doc], filter);
        if (!score.ok()) return InDocument(score.status(), result_.prompts[doc].doc_id);
        scores.push_back(std::move(score).value());
      }
      for (size_t metric = 0; metric < task_.metrics().size(); ++metric)
        result_.figures.push_back(
            Aggregate(task_.metrics()[metric], filter.name(), metric, scores));
    }
    return OkStatus();
  }

  MetricFigure Aggregate(const TaskMetric& metric, const std::string& filter, size_t index,
                         const std::vector<DocumentScore>& scores) const {
    MetricFigure figure{metric.name, filter, 0, std::nullopt};
    if (metric.aggregation == "bypass") {
      figure.value = kBypass;
      return figure;
    }
    const MetricValues values = ValuesOf(metric, index, scores);
    figure.value = values.Figure();
    figure.error = values.Error(options_.bootstrap_iterations, context_.pool);
    return figure;
  }

  const EvaluatedModel& model_;
  const Task& task_;
  const EvalOptions& options_;
  AnswerJournal* journal_;
  const Context& context_;
  std::vector<std::vector<FedTokens>> fed_;  // of each document
  TaskResult result_;
};

// The first of the largest.
int64_t Best(const std::vector<double>& scores) {
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

Value MultipleChoiceMetric(const TaskMetric& metric, const DocumentPrompt& prompt,
                           const std::vector<RequestAnswer>& answers) {
  std::vector<double> scores;
  for (size_t i = 0; i < answers.size(); ++i) {
    // By characters of the choice, without what stands in front of it.
    const auto length = static_cast<double>(CountCodePoints(prompt.choices[i]));
    scores.push_back(answers[i].loglikelihood / (metric.name == "acc_norm" ? length : 1.0));
  }
  const int64_t best = Best(scores);
  // An answer that is a text is one of the choices.
  const bool right = prompt.answer.is_string()
                         ? prompt.choices[static_cast<size_t>(best)] == prompt.answer.as_string()
                         : prompt.answer == Value(best);
  return right ? 1.0 : 0.0;
}

Value RollingMetric(const TaskMetric& metric, double loglikelihood,
                    const TaskDefinition::Counts& counts) {
  const bool words = metric.name == "word_perplexity";
  return Value::Array{loglikelihood, words ? counts.words : counts.bytes};
}

}  // namespace

Result<DocumentScore> ScoreDocument(const Task& task, const DocumentPrompt& prompt,
                                    const std::vector<RequestAnswer>& answers,
                                    const AnswerFilter& filter) {
  DocumentScore score;
  const Value& doc = task.documents()[static_cast<size_t>(prompt.doc_id)];
  if (task.kind() == TaskKind::kGenerate) {
    OCTAVO_ASSIGN_OR_RETURN(std::string kept, task.Filter(filter, doc, answers.front().text));
    score.filtered.push_back(std::move(kept));
  }
  for (const TaskMetric& metric : task.metrics()) {
    Value value;
    switch (task.kind()) {
      case TaskKind::kMultipleChoice:
        value = MultipleChoiceMetric(metric, prompt, answers);
        break;
      case TaskKind::kLoglikelihood:
        value = metric.name == "perplexity" ? Value(answers.front().loglikelihood)
                                            : Value(answers.front().is_greedy ? 1 : 0);
        break;
      case TaskKind::kRolling:
        value = RollingMetric(metric, answers.front().loglikelihood,
                              task.CountsOf(doc, prompt.context));
        break;
      case TaskKind::kGenerate: {
        if (!metric.exact_match) break;  // nothing is compared
        const std::string target =
            prompt.target.is_string() ? prompt.target.as_string() : WriteJson(prompt.target);
        OCTAVO_ASSIGN_OR_RETURN(const bool equal,
                                metric.exact_match->Equal(score.filtered.front(), target));
        value = equal ? 1.0 : 0.0;
        break;
      }
    }
    score.metrics.emplace_back(metric.name, std::move(value));
  }
  return score;
}

Result<TaskResult> Evaluate(const EvaluatedModel& model, const Task& task,
                            const EvalOptions& options, AnswerJournal* journal,
                            const Context& context) {
  return TaskRun(model, task, options, journal, context).Run();
}

}  // namespace octavo
