// mmlu: multiple-choice questions on 57 subjects, in four groups.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "eval/task_definition.h"

namespace octavo {
namespace {

// Of every subject; description and alias are added.
constexpr char kConfig[] = R"json({
  "test_split": "test",
  "fewshot_split": "dev",
  "doc_to_text": "{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\nC. {{choices[2]}}\nD. {{choices[3]}}\nAnswer:",
  "doc_to_target": "answer",
  "doc_to_choice": [
    "A",
    "B",
    "C",
    "D"
  ],
  "metric_list": [
    {
      "metric": "acc",
      "aggregation": "mean",
      "higher_is_better": true
    }
  ],
  "output_type": "multiple_choice",
  "metadata": {
    "version": 1.0
  },
  "fewshot_config": {
    "sampler": "first_n"
  }
})json";

struct Subject {
  std::string_view name;
  std::string_view group;
};
constexpr Subject kSubjects[] = {
    {"abstract_algebra", "stem"},
    {"anatomy", "stem"},
    {"astronomy", "stem"},
    {"business_ethics", "other"},
    {"clinical_knowledge", "other"},
    {"college_biology", "stem"},
    {"college_chemistry", "stem"},
    {"college_computer_science", "stem"},
    {"college_mathematics", "stem"},
    {"college_medicine", "other"},
    {"college_physics", "stem"},
    {"computer_security", "stem"},
    {"conceptual_physics", "stem"},
    {"econometrics", "social_sciences"},
    {"electrical_engineering", "stem"},
    {"elementary_mathematics", "stem"},
    {"formal_logic", "humanities"},
    {"global_facts", "other"},
    {"high_school_biology", "stem"},
    {"high_school_chemistry", "stem"},
    {"high_school_computer_science", "stem"},
    {"high_school_european_history", "humanities"},
    {"high_school_geography", "social_sciences"},
    {"high_school_government_and_politics", "social_sciences"},
    {"high_school_macroeconomics", "social_sciences"},
    {"high_school_mathematics", "stem"},
    {"high_school_microeconomics", "social_sciences"},
    {"high_school_physics", "stem"},
    {"high_school_psychology", "social_sciences"},
    {"high_school_statistics", "stem"},
    {"high_school_us_history", "humanities"},
    {"high_school_world_history", "humanities"},
    {"human_aging", "other"},
    {"human_sexuality", "social_sciences"},
    {"international_law", "humanities"},
    {"jurisprudence", "humanities"},
    {"logical_fallacies", "humanities"},
    {"machine_learning", "stem"},
    {"management", "other"},
    {"marketing", "other"},
    {"medical_genetics", "other"},
    {"miscellaneous", "other"},
    {"moral_disputes", "humanities"},
    {"moral_scenarios", "humanities"},
    {"nutrition", "other"},
    {"philosophy", "humanities"},
    {"prehistory", "humanities"},
    {"professional_accounting", "other"},
    {"professional_law", "humanities"},
    {"professional_medicine", "other"},
    {"professional_psychology", "social_sciences"},
    {"public_relations", "social_sciences"},
    {"security_studies", "social_sciences"},
    {"sociology", "social_sciences"},
    {"us_foreign_policy", "social_sciences"},
    {"virology", "other"},
    {"world_religions", "humanities"},
};

// CSV with the choices in columns A to D, and the answer as a number or a letter.
Result<Value> FromCsv(const TaskDefinition& task, Value row) {
  Value choices = Value::MakeArray();
  for (const char* key : {"A", "B", "C", "D"}) {
    const Value* choice = row.Find(key);
    if (choice == nullptr) return row;
    choices.as_array().push_back(*choice);
  }
  Value converted = Value::MakeObject();
  const Value* question = row.Find("question");
  if (question != nullptr) converted.Set("question", *question);
  converted.Set("subject", task.name.substr(std::string_view("mmlu_").size()));
  converted.Set("choices", std::move(choices));
  if (const Value* answer = row.Find("answer")) {
    constexpr std::string_view kAnswers = "0123ABCD";
    const std::string text = answer->is_string() ? answer->as_string() : WriteJson(*answer);
    const size_t place = text.size() == 1 ? kAnswers.find(text) : std::string_view::npos;
    if (place == std::string_view::npos)
      return InvalidArgument(fmt::format("the answer is {}, expected 0 to 3 or A to D", text));
    converted.Set("answer", static_cast<int64_t>(place % 4));
  }
  return converted;
}

std::vector<TaskDefinition> Tasks() {
  std::vector<TaskDefinition> tasks;
  for (const Subject& subject : kSubjects) {
    const std::string name(subject.name);
    std::string words = name;
    std::replace(words.begin(), words.end(), '_', ' ');
    TaskDefinition task;
    task.name = "mmlu_" + name;
    // The configuration is JSON, so two members more go behind its opening brace.
    task.config = fmt::format(
        "{{\"task_alias\": \"{}\", \"description\": \"The following are multiple choice questions "
        "(with answers) about {}.\\n\\n\",{}",
        name, words, std::string_view(kConfig).substr(1));
    task.files = {fmt::format("mmlu_{}/{{split}}.jsonl", name),
                  fmt::format("mmlu/{}/{{split}}.jsonl", name),
                  fmt::format("mmlu/{{split}}/{}_{{split}}.csv", name),
                  fmt::format("mmlu/{}_{{split}}.csv", name),
                  fmt::format("mmlu-subset/{}_{{split}}.csv", name)};
    task.columns = {"question", "choices", "answer"};
    task.origin = "cais/mmlu, or CSV files with a header question,A,B,C,D,answer";
    task.convert_row = FromCsv;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::vector<TaskGroup> Groups() {
  constexpr std::string_view kGroups[][2] = {{"stem", "stem"},
                                             {"other", "other"},
                                             {"social_sciences", "social sciences"},
                                             {"humanities", "humanities"}};
  std::vector<TaskGroup> groups = {{"mmlu", "mmlu", {}, "acc", "2"}};
  for (const auto& [name, alias] : kGroups) {
    TaskGroup group{fmt::format("mmlu_{}", name), std::string(alias), {}, "acc", "2"};
    for (const Subject& subject : kSubjects) {
      if (subject.group == name) group.members.push_back(fmt::format("mmlu_{}", subject.name));
    }
    groups.front().members.push_back(group.name);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

extern const TaskFamily kMmluTasks;
const TaskFamily kMmluTasks = {.tasks = Tasks, .groups = Groups};

}  // namespace octavo
