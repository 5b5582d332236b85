#include "eval/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "eval/answers.h"
#include "eval/scorer.h"
#include "eval/statistics.h"
#include "text/unicode.h"

namespace octavo {

namespace {

constexpr int64_t kDefaultNewTokens = 256;

class TaskRun {
 public:
  TaskRun(const EvaluatedModel& model, const Task& task, const EvalOptions& options,
          const Context& context)
      : model_(model), task_(task), options_(options), context_(context) {}

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
        return RunLoglikelihoods();
      case TaskKind::kRolling:
        return RunRolling();
      case TaskKind::kGenerate:
        return RunGenerations();
    }
    return Internal("no such kind of task");
  }

  std::function<void(int64_t)> Advance(int64_t total) {
    context_.progress.Start(task_.name(), total);
    return [this](int64_t done) { context_.progress.Advance(done); };
  }

  // Takes a request up to be scored.
  Status AddFed(const TokenRequest& request, int64_t doc_id) {
    Result<FedTokens> fed = Feed(request, model_.max_length);
    if (!fed.ok()) return InDocument(fed.status(), doc_id);
    result_.truncated += fed->truncated ? 1 : 0;
    fed_.push_back(std::move(fed).value());
    return OkStatus();
  }

  Status InDocument(const Status& status, int64_t doc_id) const {
    return status.Annotate(fmt::format("task {}, document {}", task_.name(), doc_id));
  }

  Result<std::vector<Loglikelihood>> ScoreFed() {
    Scorer scorer(model_.model, context_);
    auto scores = scorer.Score(fed_, Advance(std::ssize(fed_)));
    if (!scores.ok()) return scores.status().Annotate("task " + task_.name());
    return scores;
  }

  Status RunLoglikelihoods() {
    for (const DocumentPrompt& prompt : result_.prompts) {
      for (const std::string& continuation : prompt.continuations) {
        const auto request = model_.encoder.EncodePair(prompt.context, continuation);
        if (!request.ok()) return InDocument(request.status(), prompt.doc_id);
        OCTAVO_RETURN_IF_ERROR(AddFed(*request, prompt.doc_id));
      }
    }
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Loglikelihood> scores, ScoreFed());
    size_t next = 0;
    for (size_t doc = 0; doc < result_.prompts.size(); ++doc) {
      for (size_t i = 0; i < result_.prompts[doc].continuations.size(); ++i, ++next)
        result_.answers[doc].push_back({scores[next].sum, scores[next].is_greedy});
    }
    return OkStatus();
  }

  Status RunRolling() {
    std::vector<size_t> windows;  // of each document
    for (const DocumentPrompt& prompt : result_.prompts) {
      const auto tokens = model_.encoder.Encode(prompt.context);
      if (!tokens.ok()) return InDocument(tokens.status(), prompt.doc_id);
      const size_t before = fed_.size();
      for (const TokenRequest& window :
           RollingWindows(*tokens, model_.encoder.prefix(), model_.max_length)) {
        OCTAVO_RETURN_IF_ERROR(AddFed(window, prompt.doc_id));
      }
      windows.push_back(fed_.size() - before);
    }
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Loglikelihood> scores, ScoreFed());
    size_t next = 0;
    for (size_t doc = 0; doc < windows.size(); ++doc) {
      RequestAnswer answer;
      for (size_t i = 0; i < windows[doc]; ++i) answer.loglikelihood += scores[next++].sum;
      result_.answers[doc].push_back(std::move(answer));
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
    auto texts = GenerateAnswers(model_.model, model_.tokenizer, prompts, *generate,
                                 options_.batch_size, context_, Advance(std::ssize(prompts)));
    if (!texts.ok()) return texts.status().Annotate("task " + task_.name());
    for (size_t doc = 0; doc < texts->size(); ++doc)
      result_.answers[doc].push_back({.text = std::move((*texts)[doc])});
    return OkStatus();
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
    std::vector<double> values;
    std::vector<WeightedLoglikelihood> weighted;
    for (const DocumentScore& score : scores) {
      const Value& value = score.metrics[index].second;
      if (value.is_array()) {
        weighted.push_back({value.as_array()[0].as_double(), value.as_array()[1].as_int()});
      } else {
        values.push_back(value.as_double());
      }
    }
    if (metric.aggregation == "weighted_perplexity") {
      figure.value = WeightedPerplexity(weighted);
    } else if (metric.aggregation == "bits_per_byte") {
      figure.value = BitsPerByte(weighted);
    } else if (metric.aggregation == "perplexity") {
      figure.value = PerplexityOf(values);
      figure.error = PerplexityStderr(values, options_.bootstrap_iterations, context_.pool);
    } else {
      figure.value = Mean(values);
      if (options_.bootstrap_iterations > 0) figure.error = MeanStderr(values);
    }
    return figure;
  }

  const EvaluatedModel& model_;
  const Task& task_;
  const EvalOptions& options_;
  const Context& context_;
  std::vector<FedTokens> fed_;
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
  const bool right = prompt.target.is_string()
                         ? prompt.choices[static_cast<size_t>(best)] == prompt.target.as_string()
                         : prompt.target == Value(best);
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
  if (task.kind() == TaskKind::kGenerate) {
    OCTAVO_ASSIGN_OR_RETURN(std::string kept, filter.Apply(answers.front().text));
    score.filtered.push_back(std::move(kept));
  }
  const Value& doc = task.documents()[static_cast<size_t>(prompt.doc_id)];
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
        value = RollingMetric(metric, answers.front().loglikelihood, task.CountsOf(doc));
        break;
      case TaskKind::kGenerate: {
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
                            const EvalOptions& options, const Context& context) {
  return TaskRun(model, task, options, context).Run();
}

}  // namespace octavo
