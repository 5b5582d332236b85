#include "eval/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml.h"
#include "eval/task_data.h"
#include "eval/wikitext_page.h"

namespace octavo {

namespace {

struct KindName {
  std::string_view name;
  TaskKind kind;
};
constexpr std::array kKinds = {KindName{"multiple_choice", TaskKind::kMultipleChoice},
                               KindName{"loglikelihood", TaskKind::kLoglikelihood},
                               KindName{"loglikelihood_rolling", TaskKind::kRolling},
                               KindName{"generate_until", TaskKind::kGenerate}};

// The metrics there are, and how each is aggregated unless the configuration says so.
struct KnownMetric {
  std::string_view name;
  TaskKind kind;
  std::string_view aggregation;
  bool higher_is_better;
};
constexpr std::array kMetrics = {
    KnownMetric{"acc", TaskKind::kMultipleChoice, "mean", true},
    KnownMetric{"acc_norm", TaskKind::kMultipleChoice, "mean", true},
    KnownMetric{"acc", TaskKind::kLoglikelihood, "mean", true},
    KnownMetric{"perplexity", TaskKind::kLoglikelihood, "perplexity", false},
    KnownMetric{"word_perplexity", TaskKind::kRolling, "weighted_perplexity", false},
    KnownMetric{"byte_perplexity", TaskKind::kRolling, "weighted_perplexity", false},
    KnownMetric{"bits_per_byte", TaskKind::kRolling, "bits_per_byte", false},
    KnownMetric{"exact_match", TaskKind::kGenerate, "mean", true},
    KnownMetric{"bypass", TaskKind::kGenerate, "bypass", true}};

// A member, or null.
Value Member(const Value& object, std::string_view key) {
  const Value* member = object.Find(key);
  return member != nullptr ? *member : Value();
}

bool IsDigits(const std::string& text) {
  return !text.empty() && text.size() < 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Result<TaskMetric> FindMetric(const std::string& name, TaskKind kind) {
  for (const KnownMetric& known : kMetrics) {
    if (known.name == name && known.kind == kind)
      return TaskMetric{name, std::string(known.aggregation), known.higher_is_better, {}};
  }
  return Unsupported(fmt::format("the metric \"{}\" is not implemented for this kind", name));
}

Result<TaskMetric> ReadMetric(const Value& config, TaskKind kind) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string name, config.RequireString("metric"));
  OCTAVO_ASSIGN_OR_RETURN(TaskMetric metric, FindMetric(name, kind));
  OCTAVO_ASSIGN_OR_RETURN(const std::string aggregation,
                          config.GetString("aggregation", metric.aggregation));
  if (aggregation != metric.aggregation) {
    return Unsupported(fmt::format("{} is aggregated by \"{}\"; {} is implemented", metric.name,
                                   aggregation, metric.aggregation));
  }
  OCTAVO_ASSIGN_OR_RETURN(metric.higher_is_better,
                          config.GetBool("higher_is_better", metric.higher_is_better));
  if (name == "exact_match") {
    OCTAVO_ASSIGN_OR_RETURN(metric.exact_match, ExactMatch::FromConfig(config));
  }
  return metric;
}

}  // namespace

Result<Task> Task::Make(const TaskDefinition& definition, std::optional<int64_t> num_fewshot) {
  Task task(definition);
  Status status = task.ReadConfig();
  if (status.ok()) status = task.ReadMetrics();
  if (status.ok()) status = task.ReadFewshot(num_fewshot);
  if (!status.ok()) return status.Annotate("task " + definition.name);
  return task;
}

Status Task::ReadConfig() {
  OCTAVO_ASSIGN_OR_RETURN(config_, ParseYaml(definition_.config, definition_.name));
  OCTAVO_ASSIGN_OR_RETURN(const std::string kind, config_.GetString("output_type", ""));
  const auto known = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const KindName& entry) { return entry.name == kind; });
  if (known == kKinds.end())
    return Unsupported(fmt::format("output_type \"{}\" is not implemented", kind));
  kind_ = known->kind;
  for (const char* key : {"doc_to_image", "doc_to_audio", "gen_prefix", "use_prompt"}) {
    if (!Member(config_, key).is_null())
      return Unsupported(fmt::format("{} is not implemented", key));
  }
  OCTAVO_ASSIGN_OR_RETURN(description_, config_.GetString("description", ""));
  OCTAVO_ASSIGN_OR_RETURN(target_delimiter_, config_.GetString("target_delimiter", " "));
  OCTAVO_ASSIGN_OR_RETURN(fewshot_delimiter_, config_.GetString("fewshot_delimiter", "\n\n"));
  if (definition_.text == nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(text_, DocField::Text(Member(config_, "doc_to_text")));
  }
  if (definition_.target == nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(target_, DocField::Text(Member(config_, "doc_to_target")));
  }
  const Value choices = Member(config_, "doc_to_choice");
  if (definition_.choices == nullptr && !choices.is_null()) {
    OCTAVO_ASSIGN_OR_RETURN(choices_, DocField::List(choices));
  } else if (definition_.choices == nullptr && kind_ == TaskKind::kMultipleChoice) {
    return InvalidArgument("multiple_choice needs doc_to_choice");
  }
  generation_ = Member(config_, "generation_kwargs");
  if (kind_ == TaskKind::kGenerate && generation_.is_null()) generation_ = Value::MakeObject();
  return OkStatus();
}

Status Task::ReadMetrics() {
  const Value metrics = Member(config_, "metric_list");
  if (!metrics.is_array() || metrics.as_array().empty())
    return InvalidArgument("there is no metric_list");
  for (const Value& config : metrics.as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(TaskMetric metric, ReadMetric(config, kind_));
    metrics_.push_back(std::move(metric));
  }
  if (const Value filters = Member(config_, "filter_list"); filters.is_array()) {
    for (const Value& config : filters.as_array()) {
      OCTAVO_ASSIGN_OR_RETURN(
          AnswerFilter filter,
          AnswerFilter::FromConfig(config, definition_.custom_filter != nullptr));
      filters_.push_back(std::move(filter));
    }
  }
  if (filters_.empty()) filters_.push_back(AnswerFilter::None());
  return OkStatus();
}

Status Task::ReadFewshot(std::optional<int64_t> num_fewshot) {
  const Value* configured = config_.Find("num_fewshot");
  OCTAVO_ASSIGN_OR_RETURN(num_fewshot_, config_.GetInt("num_fewshot", 0));
  const bool fixed_at_none = configured != nullptr && num_fewshot_ == 0;
  if (num_fewshot && !fixed_at_none) num_fewshot_ = *num_fewshot;
  const Value fewshot = Member(config_, "fewshot_config");
  if (!fewshot.is_null()) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string sampler, fewshot.GetString("sampler", "default"));
    if (sampler != "default" && sampler != "first_n")
      return Unsupported(fmt::format("the few-shot sampler \"{}\" is not implemented", sampler));
    first_n_ = sampler == "first_n";
    if (const Value samples = Member(fewshot, "samples"); samples.is_array())
      examples_ = samples.as_array();
  }
  keeps_document_out_ = Split("fewshot_split") == Split("test_split");
  return OkStatus();
}

std::string Task::Split(const char* key) const {
  const Value split = Member(config_, key);
  return split.is_string() ? split.as_string() : "";
}

std::string Task::EvaluatedSplit() const {
  const std::string test = Split("test_split");
  return test.empty() ? Split("validation_split") : test;
}

std::string Task::ExampleSplit() const {
  for (const char* key : {"fewshot_split", "training_split", "validation_split"}) {
    if (const std::string split = Split(key); !split.empty()) return split;
  }
  return Split("test_split");
}

std::string Task::alias() const {
  const Value alias = Member(config_, "task_alias");
  return alias.is_string() ? alias.as_string() : name();
}

double Task::version() const {
  const Value version = Member(Member(config_, "metadata"), "version");
  return version.is_number() ? version.as_double() : 0;
}

Result<std::vector<Value>> Task::ReadSplit(const std::filesystem::path& folder,
                                           const std::string& split) {
  OCTAVO_ASSIGN_OR_RETURN(const std::filesystem::path path, FindSplit(definition_, folder, split));
  data_files_.Set(split, path.string());
  return ReadSplitFile(definition_, path);
}

Status Task::ReadData(const std::filesystem::path& folder) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> rows, ReadSplit(folder, EvaluatedSplit()));
  OCTAVO_RETURN_IF_ERROR(SetDocuments(std::move(rows)));
  if (num_fewshot_ == 0 || kind_ == TaskKind::kRolling || !examples_.empty()) return OkStatus();
  if (ExampleSplit() == EvaluatedSplit()) {
    examples_ = documents_;
    return OkStatus();
  }
  OCTAVO_ASSIGN_OR_RETURN(rows, ReadSplit(folder, ExampleSplit()));
  return SetExamples(std::move(rows));
}

Result<Value> Task::MakeDocument(Value row) const {
  return definition_.process_doc != nullptr ? definition_.process_doc(std::move(row))
                                            : Result<Value>(std::move(row));
}

Status Task::SetDocuments(std::vector<Value> rows) {
  documents_.clear();
  for (Value& row : rows) {
    OCTAVO_ASSIGN_OR_RETURN(Value document, MakeDocument(std::move(row)));
    documents_.push_back(std::move(document));
  }
  return OkStatus();
}

Status Task::SetExamples(std::vector<Value> rows) {
  std::swap(documents_, examples_);
  const Status status = SetDocuments(std::move(rows));
  std::swap(documents_, examples_);
  return status;
}

Result<Value> Task::TextOf(const Value& doc) const {
  if (definition_.text != nullptr) return definition_.text(doc);
  OCTAVO_ASSIGN_OR_RETURN(Value text, text_->Of(doc));
  if (text.is_int() && choices_) return text;
  if (!text.is_string())
    return InvalidArgument(fmt::format("doc_to_text gives {}, expected a text", text.type_name()));
  const bool is_column = doc.Find(Member(config_, "doc_to_text").as_string()) != nullptr;
  if (choices_ && !is_column && IsDigits(text.as_string()))
    return Value(static_cast<int64_t>(std::stoll(text.as_string())));
  return text;
}

Result<std::vector<std::string>> Task::ChoicesOf(const Value& doc) const {
  if (definition_.choices != nullptr) return definition_.choices(doc);
  std::vector<std::string> choices;
  if (!choices_) return choices;
  OCTAVO_ASSIGN_OR_RETURN(const Value list, choices_->Of(doc));
  if (!list.is_array())
    return InvalidArgument(
        fmt::format("doc_to_choice gives {}, expected a list", list.type_name()));
  for (const Value& choice : list.as_array()) {
    if (!choice.is_string())
      return InvalidArgument(fmt::format("a choice is {}, expected a text", choice.type_name()));
    choices.push_back(choice.as_string());
  }
  return choices;
}

Result<Value> Task::TargetOf(const Value& doc) const {
  if (definition_.target != nullptr) return definition_.target(doc);
  OCTAVO_ASSIGN_OR_RETURN(Value target, target_->Of(doc));
  if (choices_ && target.is_string() && IsDigits(target.as_string()))
    return Value(static_cast<int64_t>(std::stoll(target.as_string())));
  return target;
}

Result<std::string> Task::Filter(const AnswerFilter& filter, const Value& doc,
                                 const std::string& answer) const {
  if (filter.is_custom()) return definition_.custom_filter(doc, answer);
  return filter.Apply(answer);
}

bool Task::is_scored() const {
  return std::any_of(metrics_.begin(), metrics_.end(),
                     [](const TaskMetric& metric) { return metric.aggregation != "bypass"; });
}

TaskDefinition::Counts Task::CountsOf(const Value& doc, const std::string& target) const {
  if (definition_.counts != nullptr) return definition_.counts(doc);
  return {CountWords(target), std::ssize(target)};
}

Value Task::ConfigJson() const {
  Value json = Value::MakeObject();
  json.Set("task", name());
  const auto copy = [&](std::string_view key) {
    if (Value member = Member(config_, key); !member.is_null()) json.Set(key, std::move(member));
  };
  const auto copy_or = [&](std::string_view key, Value fallback) {
    Value member = Member(config_, key);
    json.Set(key, member.is_null() ? std::move(fallback) : std::move(member));
  };
  copy("task_alias");
  json.Set("dataset_path", "json");
  Value kwargs = Value::MakeObject();
  kwargs.Set("data_files", data_files_);
  json.Set("dataset_kwargs", std::move(kwargs));
  for (const char* key :
       {"training_split", "validation_split", "test_split", "fewshot_split", "process_docs"})
    copy(key);
  copy_or("doc_to_text", "");
  copy_or("doc_to_target", "");
  copy_or("unsafe_code", false);
  copy("doc_to_choice");
  copy("process_results");
  json.Set("description", description_);
  json.Set("target_delimiter", target_delimiter_);
  json.Set("fewshot_delimiter", fewshot_delimiter_);
  const Value own = Member(config_, "fewshot_config");
  Value fewshot = Value::MakeObject();
  fewshot.Set("sampler", first_n_ ? "first_n" : "default");
  fewshot.Set("split", Member(config_, "fewshot_split"));
  fewshot.Set("process_docs", Member(config_, "process_docs"));
  fewshot.Set("fewshot_indices", nullptr);
  fewshot.Set("samples", Member(own, "samples"));
  for (const char* key : {"doc_to_text", "doc_to_choice", "doc_to_target"})
    fewshot.Set(key, Member(config_, key));
  fewshot.Set("gen_prefix", nullptr);
  fewshot.Set("fewshot_delimiter", fewshot_delimiter_);
  fewshot.Set("target_delimiter", target_delimiter_);
  json.Set("fewshot_config", std::move(fewshot));
  json.Set("num_fewshot", num_fewshot_);
  for (const char* key : {"metric_list", "output_type", "generation_kwargs"}) copy(key);
  json.Set("repeats", 1);
  copy("filter_list");
  copy_or("should_decontaminate", false);
  copy("doc_to_decontamination_query");
  copy("metadata");
  return json;
}

}  // namespace octavo
