// The model of 260,000 parameters, ready to be asked, and tasks to ask it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval/eval_subject.h"
#include "eval/task_list.h"
#include "support/golden_files.h"
#include "text/chat_template.h"
#include "unit/eval/eval_data.h"

namespace octavo::testing {

// stories260k, whose tokenizer adds BOS and whose context is 512.
class Stories {
 public:
  explicit Stories(const SubjectOptions& options = {})
      : subject_(EvalSubject::Load(std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k",
                                   options, context_.context)
                     .value()) {}

  Result<TaskResult> Run(const Task& task, const EvalOptions& options = {},
                         AnswerJournal* journal = nullptr) {
    return Evaluate(subject_->evaluated(), task, options, journal, context_.context);
  }
  const EvalSubject& subject() const { return *subject_; }

 private:
  TestContext context_;
  std::unique_ptr<EvalSubject> subject_;
};

inline Task MakeTask(const std::string& name, std::optional<int64_t> num_fewshot = std::nullopt) {
  const std::string names[] = {name};
  return std::move(SelectTasks(names, num_fewshot).value().tasks.front());
}

inline ChatTemplate Smollm2Template() {
  Value tokens = Value::MakeObject();
  tokens.Set("bos_token", "<|im_start|>");
  tokens.Set("eos_token", "<|im_end|>");
  return ChatTemplate::Compile(ReadFile(TestData("templates/smollm2.jinja")).value(), tokens)
      .value();
}

// A pool of `size` rows of which only those that are drawn are at hand, {"index": ..., ...}.
inline std::vector<Value> SparsePool(const std::string& path, size_t size) {
  std::vector<Value> rows = ReadEvalRows(path);
  std::vector<Value> pool(size, rows.front());
  for (Value& placeholder : pool) {
    for (auto& [key, value] : placeholder.as_object()) value = "not at hand";
  }
  for (Value& row : rows) {
    const auto index = static_cast<size_t>(row.Find("index")->as_int());
    row.Erase("index");
    pool[index] = row;
  }
  return pool;
}

}  // namespace octavo::testing
