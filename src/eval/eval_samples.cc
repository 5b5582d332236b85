// The samples file.
#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "eval/eval_report.h"
#include "eval/sample_hashes.h"
#include "io/sha256.h"

namespace octavo {

namespace {

// What Python's str() makes of it.
std::string PythonText(const Value& value) {
  return value.is_string() ? value.as_string() : WriteJson(value);
}

Value LoglikelihoodTexts(const RequestAnswer& answer) {
  return Value::Array{PythonFloat(answer.loglikelihood), answer.is_greedy ? "True" : "False"};
}

Value Arguments(const Task& task, const DocumentPrompt& prompt) {
  Value arguments = Value::MakeObject();
  const auto add = [&](const std::string& context, const Value* second) {
    Value argument = Value::MakeObject();
    argument.Set("arg_0", context);
    if (second != nullptr) argument.Set("arg_1", *second);
    arguments.Set(fmt::format("gen_args_{}", arguments.as_object().size()), std::move(argument));
  };
  for (size_t i = 0; i < prompt.continuations.size(); ++i) {
    const Value second = prompt.continuations[i];
    add(prompt.ContextOf(i), &second);
  }
  if (task.kind() == TaskKind::kGenerate) add(prompt.context, &task.generation());
  if (task.kind() == TaskKind::kRolling) add(prompt.context, nullptr);
  return arguments;
}

// The answers as they came, or what a filter kept of them.
Value Responses(const Task& task, const std::vector<RequestAnswer>& answers) {
  Value responses = Value::MakeArray();
  for (const RequestAnswer& answer : answers) {
    switch (task.kind()) {
      case TaskKind::kMultipleChoice:
      case TaskKind::kLoglikelihood:
        responses.as_array().push_back(LoglikelihoodTexts(answer));
        break;
      case TaskKind::kRolling:
        responses.as_array().emplace_back(PythonFloat(answer.loglikelihood));
        break;
      case TaskKind::kGenerate:
        responses.as_array().emplace_back(answer.text);
        break;
    }
  }
  return responses;
}

}  // namespace

SampleHashes HashSample(const Task& task, const DocumentPrompt& prompt) {
  const Value& doc = task.documents()[static_cast<size_t>(prompt.doc_id)];
  return {Sha256OfText(WriteJson(doc, {.indent = 2})), Sha256OfText(prompt.context),
          Sha256OfText(PythonText(prompt.target))};
}

std::string SamplesJsonLines(const Task& task, const TaskResult& result) {
  std::string lines;
  for (size_t filter = 0; filter < task.filters().size(); ++filter) {
    for (size_t doc = 0; doc < result.prompts.size(); ++doc) {
      const DocumentPrompt& prompt = result.prompts[doc];
      const DocumentScore& score = result.scores[filter][doc];
      const Value responses = Responses(task, result.answers[doc]);
      Value sample = Value::MakeObject();
      sample.Set("doc_id", prompt.doc_id);
      sample.Set("doc", task.documents()[static_cast<size_t>(prompt.doc_id)]);
      sample.Set("target", PythonText(prompt.target));
      sample.Set("arguments", Arguments(task, prompt));
      Value each = Value::MakeArray();  // the answers of each request: one
      for (const Value& response : responses.as_array())
        each.as_array().emplace_back(Value::Array{response});
      sample.Set("resps", std::move(each));
      Value filtered = responses;
      if (!score.filtered.empty()) filtered = Value::Array{score.filtered.front()};
      if (task.filters()[filter].is_custom()) filtered = Value::Array{std::move(filtered)};
      sample.Set("filtered_resps", std::move(filtered));
      sample.Set("filter", task.filters()[filter].name());
      Value names = Value::MakeArray();
      for (const auto& metric : score.metrics) names.as_array().emplace_back(metric.first);
      sample.Set("metrics", std::move(names));
      const SampleHashes hashes = HashSample(task, prompt);
      sample.Set("doc_hash", hashes.doc);
      sample.Set("prompt_hash", hashes.prompt);
      sample.Set("target_hash", hashes.target);
      for (const auto& [name, value] : score.metrics) sample.Set(name, value);
      lines += WriteJson(sample) + "\n";
    }
  }
  return lines;
}

}  // namespace octavo
