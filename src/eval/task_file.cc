#include "eval/task_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/suggest.h"
#include "base/yaml.h"

namespace octavo {

namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 20;

// Keys that are followed, or of which nothing depends here.
constexpr std::string_view kKeys[] = {"task",
                                      "task_alias",
                                      "tag",
                                      "dataset_path",
                                      "dataset_name",
                                      "dataset_kwargs",
                                      "training_split",
                                      "validation_split",
                                      "test_split",
                                      "fewshot_split",
                                      "doc_to_text",
                                      "doc_to_target",
                                      "doc_to_choice",
                                      "description",
                                      "target_delimiter",
                                      "fewshot_delimiter",
                                      "fewshot_config",
                                      "num_fewshot",
                                      "metric_list",
                                      "output_type",
                                      "generation_kwargs",
                                      "filter_list",
                                      "repeats",
                                      "should_decontaminate",
                                      "doc_to_decontamination_query",
                                      "metadata",
                                      "unsafe_code"};

Status CheckKeys(const Value& config) {
  const std::vector<std::string> known(std::begin(kKeys), std::end(kKeys));
  for (const auto& [key, value] : config.as_object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return Unsupported(fmt::format("\"{}\" is not implemented{}", key, DidYouMean(key, known)));
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t repeats, config.GetInt("repeats", 1));
  if (repeats != 1) return Unsupported("repeats other than 1 are not implemented");
  return OkStatus();
}

// What dataset_kwargs.data_files says: one file, or one of each split.
Status ReadDataFiles(const Value& config, const std::filesystem::path& folder,
                     TaskDefinition* task) {
  const Value* kwargs = config.Find("dataset_kwargs");
  const Value* files = kwargs != nullptr ? kwargs->Find("data_files") : nullptr;
  if (files == nullptr) return OkStatus();
  const auto add = [&](const std::string& split, const Value& file) -> Status {
    if (!file.is_string())
      return Unsupported(
          fmt::format("data_files of {} is {}, expected a path", split, file.type_name()));
    task->data_files.emplace_back(split, (folder / file.as_string()).string());
    task->data_files.emplace_back(split, file.as_string());
    return OkStatus();
  };
  if (files->is_string()) return add("train", *files);
  if (!files->is_object())
    return Unsupported(
        fmt::format("data_files is {}, expected a path of each split", files->type_name()));
  for (const auto& [split, file] : files->as_object()) {
    OCTAVO_RETURN_IF_ERROR(add(split, file));
  }
  return OkStatus();
}

Result<TaskDefinition> ReadDefinition(const std::string& text, const std::filesystem::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(const Value config, ParseYaml(text, "task"));
  if (!config.is_object())
    return InvalidArgument(fmt::format("is {}, expected a task", config.type_name()));
  OCTAVO_RETURN_IF_ERROR(CheckKeys(config));
  TaskDefinition task;
  OCTAVO_ASSIGN_OR_RETURN(task.name, config.RequireString("task"));
  task.config = text;
  OCTAVO_RETURN_IF_ERROR(ReadDataFiles(config, path.parent_path(), &task));
  task.files = {task.name + "/{split}.jsonl", task.name + "/{split}.csv",
                task.name + "_{split}.jsonl"};
  OCTAVO_ASSIGN_OR_RETURN(const std::string source, config.GetString("dataset_path", ""));
  task.origin = source.empty() ? "what the task file's author has" : source;
  return task;
}

}  // namespace

Result<TaskDefinition> ReadTaskFile(const std::filesystem::path& path) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  auto task = ReadDefinition(text, path);
  if (!task.ok()) return task.status().Annotate(path.string());
  return task;
}

}  // namespace octavo
