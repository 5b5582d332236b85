#include "eval/eval_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/json.h"
#include "eval/sample_hashes.h"
#include "eval/statistics.h"
#include "eval/task_list.h"
#include "io/sha256.h"

namespace octavo {

namespace {

Value ErrorOrNone(const std::optional<double>& error) {
  return error ? Value(*error) : Value("N/A");
}

// What a group's members came to, for its own figures.
class GroupFigures {
 public:
  GroupFigures(std::span<const Task> tasks, std::span<const TaskResult> results,
               std::span<const TaskGroup> groups)
      : tasks_(tasks), results_(results), groups_(groups) {}

  Value Of(const TaskGroup& group) const {
    Value json = Value::MakeObject();
    json.Set("alias", group.alias);
    json.Set("name", group.name);
    if (group.metric.empty()) return json;
    std::map<std::string, std::vector<GroupPart>> by_filter;
    int64_t size = 0;
    for (const std::string& name : TasksOfGroup(group, groups_)) {
      const TaskResult* result = Find(name);
      if (result == nullptr) continue;
      const int64_t documents = std::ssize(result->prompts);
      size += documents;
      for (const MetricFigure& figure : result->figures) {
        if (figure.metric == group.metric)
          by_filter[figure.filter].push_back({figure.value, figure.error, documents});
      }
    }
    json.Set("sample_len", size);
    Value counts = Value::MakeObject();
    for (const auto& [filter, parts] : by_filter) {
      const std::string key = group.metric + "," + filter;
      json.Set(key, GroupMean(parts, /*by_size=*/true));
      json.Set(group.metric + "_stderr," + filter, ErrorOrNone(GroupStderr(parts, true)));
      int64_t count = 0;
      for (const GroupPart& part : parts) count += part.size;
      counts.Set(key, count);
    }
    json.Set("sample_count", std::move(counts));
    return json;
  }

 private:
  const TaskResult* Find(const std::string& name) const {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].name() == name) return &results_[i];
    }
    return nullptr;
  }

  std::span<const Task> tasks_;
  std::span<const TaskResult> results_;
  std::span<const TaskGroup> groups_;
};

Value TaskFigures(const Task& task, const TaskResult& result) {
  Value json = Value::MakeObject();
  json.Set("name", task.name());
  json.Set("alias", task.alias());
  json.Set("sample_len", std::ssize(result.prompts));
  for (const MetricFigure& figure : result.figures) {
    json.Set(figure.metric + "," + figure.filter, figure.value);
    json.Set(figure.metric + "_stderr," + figure.filter, ErrorOrNone(figure.error));
  }
  return json;
}

// Members by name, as lm-eval sorts most of its sections.
Value Sorted(Value object) {
  std::sort(object.as_object().begin(), object.as_object().end(),
            [](const Value::Member& a, const Value::Member& b) { return a.first < b.first; });
  return object;
}

// What `of_task` says of each task, and of each group what its first task has.
template <typename OfTask>
Value Section(std::span<const Task> tasks, std::span<const TaskGroup> groups, OfTask of_task) {
  Value section = Value::MakeObject();
  for (const Task& task : tasks) section.Set(task.name(), of_task(task));
  for (const TaskGroup& group : groups) {
    const std::vector<std::string> names = TasksOfGroup(group, groups);
    const Value* first = names.empty() ? nullptr : section.Find(names.front());
    if (first != nullptr) section.Set(group.name, Value(*first));
  }
  return Sorted(std::move(section));
}

Value TokenPair(const std::optional<std::pair<std::string, TokenId>>& token) {
  if (!token) return Value::Array{"None", "None"};
  return Value::Array{token->first, std::to_string(token->second)};
}

Value TextOrNull(const std::string& text) {
  return text.empty() ? Value() : Value(text);
}

Value HashOrNull(const std::string& text) {
  return text.empty() ? Value() : Value(Sha256OfText(text));
}

Value ConfigJson(const EvalRunInfo& info, std::span<const TaskResult> results) {
  Value arguments = Value::MakeObject();
  arguments.Set("pretrained", info.model);
  for (const auto& [key, value] : info.model_arguments.as_object()) arguments.Set(key, value);
  Value config = Value::MakeObject();
  config.Set("model", "octavo");
  config.Set("model_args", std::move(arguments));
  config.Set("model_num_parameters", info.parameters);
  config.Set("model_dtype", info.dtype);
  config.Set("model_revision", "main");
  config.Set("model_sha", "");
  config.Set("batch_size", info.batch_size ? std::to_string(*info.batch_size) : "auto");
  Value sizes = Value::MakeArray();
  for (const TaskResult& result : results) {
    if (!info.batch_size && result.batch_size > 0) sizes.as_array().emplace_back(result.batch_size);
  }
  config.Set("batch_sizes", std::move(sizes));
  config.Set("device", "cpu");
  config.Set("use_cache", nullptr);
  config.Set("limit", info.limit ? Value(*info.limit) : Value());
  config.Set("bootstrap_iters", info.bootstrap_iterations);
  config.Set("gen_kwargs", Value::MakeObject());
  config.Set("random_seed", 0);
  const auto seed = static_cast<int64_t>(info.fewshot_seed);
  for (const char* key : {"numpy_seed", "torch_seed", "fewshot_seed"}) config.Set(key, seed);
  return config;
}

// The task's configuration with what the model was given, as lm-eval mixes them.
Value TaskConfig(const Task& task, const EvalRunInfo& info) {
  Value config = task.ConfigJson();
  Value* metadata = config.Find("metadata");
  if (metadata == nullptr) return config;
  metadata->Set("pretrained", info.model);
  for (const auto& [key, value] : info.model_arguments.as_object()) metadata->Set(key, value);
  metadata->Set("config_source", "octavo: " + task.name());
  return config;
}

std::string TaskHash(const Task& task, const TaskResult& result) {
  std::string all;
  for (size_t filter = 0; filter < task.filters().size(); ++filter) {
    for (const DocumentPrompt& prompt : result.prompts) {
      const SampleHashes hashes = HashSample(task, prompt);
      all += hashes.doc + hashes.prompt + hashes.target;
    }
  }
  return Sha256OfText(all);
}

void SetFigures(std::span<const Task> tasks, std::span<const TaskResult> results,
                std::span<const TaskGroup> groups, Value* json) {
  Value figures = Value::MakeObject();
  for (size_t i = 0; i < tasks.size(); ++i)
    figures.Set(tasks[i].name(), TaskFigures(tasks[i], results[i]));
  const GroupFigures group_figures(tasks, results, groups);
  Value aggregated = Value::MakeObject();
  Value members = Value::MakeObject();
  // The groups that a group holds come before it.
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    const Value of_group = group_figures.Of(*group);
    figures.Set(group->name, of_group);
    if (!group->metric.empty()) aggregated.Set(group->name, of_group);
    Value names = Value::MakeArray();
    for (const std::string& name : group->members) names.as_array().emplace_back(name);
    members.Set(group->name, std::move(names));
  }
  json->Set("results", std::move(figures));
  if (!aggregated.as_object().empty()) json->Set("groups", std::move(aggregated));
  json->Set("group_subtasks", std::move(members));
}

}  // namespace

std::string SanitizedModelName(const std::string& name) {
  std::string sanitized;
  bool replaced = false;
  for (const char c : name) {
    const bool replace = std::string_view("\"<>:/|\\?*[]").find(c) != std::string_view::npos;
    if (!replace) sanitized += c;
    if (replace && !replaced) sanitized += "__";
    replaced = replace;
  }
  return sanitized;
}

Value ResultsJson(const EvalRunInfo& info, std::span<const Task> tasks,
                  std::span<const TaskResult> results, std::span<const TaskGroup> groups,
                  bool with_samples) {
  Value json = Value::MakeObject();
  SetFigures(tasks, results, groups, &json);
  Value configs = Value::MakeObject();
  Value samples = Value::MakeObject();
  Value hashes = Value::MakeObject();
  for (size_t i = 0; i < tasks.size(); ++i) {
    configs.Set(tasks[i].name(), TaskConfig(tasks[i], info));
    Value counts = Value::MakeObject();
    counts.Set("original", std::ssize(tasks[i].documents()));
    counts.Set("effective", std::ssize(results[i].prompts));
    samples.Set(tasks[i].name(), std::move(counts));
    if (with_samples) hashes.Set(tasks[i].name(), TaskHash(tasks[i], results[i]));
  }
  json.Set("configs", Sorted(std::move(configs)));
  Value versions = Value::MakeObject();
  for (const Task& task : tasks) versions.Set(task.name(), task.version());
  for (const TaskGroup& group : groups) versions.Set(group.name, group.version);
  json.Set("versions", Sorted(std::move(versions)));
  json.Set("n-shot", Section(tasks, groups, [](const Task& task) { return task.num_fewshot(); }));
  json.Set("higher_is_better", Section(tasks, groups, [](const Task& task) {
             Value metrics = Value::MakeObject();
             for (const TaskMetric& metric : task.metrics())
               metrics.Set(metric.name, metric.higher_is_better);
             return metrics;
           }));
  json.Set("n-samples", std::move(samples));
  json.Set("config", ConfigJson(info, results));
  json.Set("git_hash", nullptr);
  json.Set("date", info.start_time);
  json.Set("pretty_env_info", info.environment);
  json.Set("transformers_version", nullptr);
  json.Set("lm_eval_version", "0.4.13");  // whose rules these are
  json.Set("octavo_version", info.version);
  json.Set("upper_git_hash", nullptr);
  json.Set("tokenizer_pad_token", TokenPair(info.pad));
  json.Set("tokenizer_eos_token", TokenPair(info.eos));
  json.Set("tokenizer_bos_token", TokenPair(info.bos));
  json.Set("eot_token_id", info.eos ? Value(static_cast<int64_t>(info.eos->second)) : Value());
  json.Set("max_length", info.max_length);
  json.Set("task_hashes", std::move(hashes));
  json.Set("model_source", "octavo");
  json.Set("model_name", info.model);
  json.Set("model_name_sanitized", SanitizedModelName(info.model));
  json.Set("system_instruction", TextOrNull(info.system_instruction));
  json.Set("system_instruction_sha", HashOrNull(info.system_instruction));
  json.Set("fewshot_as_multiturn",
           info.fewshot_as_multiturn ? Value(*info.fewshot_as_multiturn) : Value());
  json.Set("chat_template", TextOrNull(info.chat_template));
  json.Set("chat_template_sha", HashOrNull(info.chat_template));
  json.Set("total_evaluation_time_seconds", PythonFloat(info.seconds));
  return json;
}

}  // namespace octavo
