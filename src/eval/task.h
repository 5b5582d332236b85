// A task: its configuration read, its documents, and the metrics it is scored by.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "eval/answer_filter.h"
#include "eval/doc_field.h"
#include "eval/task_definition.h"

namespace octavo {

enum class TaskKind : uint8_t { kMultipleChoice, kLoglikelihood, kRolling, kGenerate };

struct TaskMetric {
  std::string name;
  // "mean", "perplexity", "weighted_perplexity", "bits_per_byte" or "bypass", which is no figure.
  std::string aggregation;
  bool higher_is_better;
  std::optional<ExactMatch> exact_match;
};

class Task {
 public:
  // `num_fewshot`: instead of the configuration's, unless that says 0. Unsupported or
  // InvalidArgument names the key.
  static Result<Task> Make(const TaskDefinition& definition, std::optional<int64_t> num_fewshot);

  // Reads the documents to be evaluated and, where there are examples, those they are drawn from.
  // NotFound names the files that were looked for and where they come from; InvalidArgument the
  // columns that were expected and found.
  Status ReadData(const std::filesystem::path& folder);
  // Those of a split instead, as rows of the data file.
  Status SetDocuments(std::vector<Value> rows);
  Status SetExamples(std::vector<Value> rows);

  const std::string& name() const { return definition_.name; }
  std::string alias() const;
  TaskKind kind() const { return kind_; }
  double version() const;
  int64_t num_fewshot() const { return num_fewshot_; }
  const std::vector<TaskMetric>& metrics() const { return metrics_; }
  const std::vector<AnswerFilter>& filters() const { return filters_; }
  // Generation: "generation_kwargs" as the configuration has it.
  const Value& generation() const { return generation_; }
  const std::string& description() const { return description_; }
  const std::string& target_delimiter() const { return target_delimiter_; }
  const std::string& fewshot_delimiter() const { return fewshot_delimiter_; }

  const std::vector<Value>& documents() const { return documents_; }
  const std::vector<Value>& examples() const { return examples_; }
  // "first_n" takes the first examples for every document, "default" draws them.
  bool takes_first_examples() const { return first_n_; }
  // Whether a document is kept out of its own examples: where lm-eval finds the two splits to have
  // the same name, which two that are not named have.
  bool keeps_document_out() const { return keeps_document_out_; }

  // Of a document: the question; the choices (an empty list where there are none); the answer, an
  // index into the choices or a text. A question that is an index is that of the right choice: then
  // the choices are the questions, and the answer is what follows each of them (winogrande).
  Result<Value> TextOf(const Value& doc) const;
  Result<std::vector<std::string>> ChoicesOf(const Value& doc) const;
  Result<Value> TargetOf(const Value& doc) const;
  // What a filter keeps of an answer to a document.
  Result<std::string> Filter(const AnswerFilter& filter, const Value& doc,
                             const std::string& answer) const;
  // False: answers are only written down ("bypass").
  bool is_scored() const;
  // Words and bytes that a perplexity is taken over: of the target, unless the task says otherwise.
  TaskDefinition::Counts CountsOf(const Value& doc, const std::string& target) const;

  // As lm-eval writes it to its results file.
  Value ConfigJson() const;

 private:
  explicit Task(TaskDefinition definition) : definition_(std::move(definition)) {}
  Status ReadConfig();
  Status ReadMetrics();
  Status ReadFewshot(std::optional<int64_t> num_fewshot);
  std::string Split(const char* key) const;  // "" where it is not named
  std::string EvaluatedSplit() const;
  std::string ExampleSplit() const;
  Result<std::vector<Value>> ReadSplit(const std::filesystem::path& folder,
                                       const std::string& split);
  Result<Value> MakeDocument(Value row) const;

  TaskDefinition definition_;
  Value config_;
  Value data_files_ = Value::MakeObject();  // split: path
  TaskKind kind_ = TaskKind::kMultipleChoice;
  int64_t num_fewshot_ = 0;
  bool first_n_ = false;
  bool keeps_document_out_ = false;
  std::string description_, target_delimiter_, fewshot_delimiter_;
  std::optional<DocField> text_, target_, choices_;
  std::vector<TaskMetric> metrics_;
  std::vector<AnswerFilter> filters_;
  Value generation_;
  std::vector<Value> documents_;
  std::vector<Value> examples_;
};

}  // namespace octavo
