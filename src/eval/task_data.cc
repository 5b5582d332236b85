#include "eval/task_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>
#include <utility>

#include "base/file.h"
#include "text/dataset_reader.h"

namespace octavo {

namespace {

// A split's own name first.
std::vector<std::string> NamesOf(const std::string& split) {
  if (split == "validation") return {split, "val", "valid", "dev", "Dev"};
  if (split == "test") return {split, "Test"};
  if (split == "train") return {split, "Train"};
  return {split};
}

std::string InSplit(std::string pattern, const std::string& split) {
  constexpr std::string_view kPlace = "{split}";
  for (size_t at = pattern.find(kPlace); at != std::string::npos; at = pattern.find(kPlace))
    pattern.replace(at, kPlace.size(), split);
  return pattern;
}

bool IsText(const std::filesystem::path& path) {
  return path.extension() == ".raw" || path.extension() == ".txt";
}

Status CheckColumns(const TaskDefinition& task, const Value& row) {
  for (const std::string& column : task.columns) {
    if (row.Find(column) != nullptr) continue;
    std::vector<std::string> found;
    for (const auto& [key, value] : row.as_object()) found.push_back(key);
    return InvalidArgument(fmt::format(
        "there is no column \"{}\": {} needs {}; this file has {}. It should be {}", column,
        task.name, fmt::join(task.columns, ", "), fmt::join(found, ", "), task.origin));
  }
  return OkStatus();
}

Result<Value> Convert(const TaskDefinition& task, Value row) {
  if (task.convert_row != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(row, task.convert_row(task, std::move(row)));
  }
  OCTAVO_RETURN_IF_ERROR(CheckColumns(task, row));
  return row;
}

}  // namespace

Result<std::filesystem::path> FindSplit(const TaskDefinition& task,
                                        const std::filesystem::path& folder,
                                        const std::string& split) {
  std::vector<std::string> names;
  for (const auto& [of, file] : task.data_files) {
    if (of != split) continue;
    for (const std::filesystem::path& found : {std::filesystem::path(file), folder / file}) {
      if (std::filesystem::is_regular_file(found)) return found;
    }
    names.push_back(file);
  }
  for (const std::string& pattern : task.files) {
    names.push_back(InSplit(pattern, split));
    for (const std::string& called : NamesOf(split)) {
      const std::string name = InSplit(pattern, called);
      // Packed files are read as they are.
      for (const std::string& found : {name, name + ".gz"}) {
        if (std::filesystem::is_regular_file(folder / found)) return folder / found;
      }
    }
  }
  return NotFound(fmt::format(
      "task {0}: no file of its {1} split in {2}; looked for {3}. It is {4}; Parquet files become "
      "JSON lines by: tools/fetch-data convert FILE.parquet --task {0} -o {5}",
      task.name, split, folder.string(), fmt::join(names, ", "), task.origin,
      (folder / InSplit(task.files.front(), split)).string()));
}

namespace {

// The lines of the file of answers that lies beside `path`, none where there is no such file.
Result<std::vector<std::string>> ReadLabels(const TaskDefinition& task,
                                            const std::filesystem::path& path) {
  std::vector<std::string> labels;
  if (task.label_suffix.empty()) return labels;
  std::filesystem::path stem = path;
  if (stem.extension() == ".gz") stem.replace_extension();
  const auto file = stem.parent_path() / (stem.stem().string() + task.label_suffix);
  if (!std::filesystem::is_regular_file(file)) return labels;
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) labels.push_back(line);
  }
  return labels;
}

}  // namespace

Result<std::vector<Value>> ReadSplitFile(const TaskDefinition& task,
                                         const std::filesystem::path& path) {
  std::vector<Value> rows;
  if (task.read_text != nullptr && IsText(path)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    rows = task.read_text(text);
  } else {
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<std::string> labels, ReadLabels(task, path));
    OCTAVO_ASSIGN_OR_RETURN(const auto reader, OpenDataset(path));
    while (true) {
      const Result<bool> more = reader->Next();
      if (!more.ok()) return more.status().Annotate(path.string());
      if (!*more) break;
      Result<Value> row = reader->Row();
      if (row.ok() && rows.size() < labels.size() && row->Find("label") == nullptr)
        row->Set("label", labels[rows.size()]);
      if (row.ok()) row = Convert(task, std::move(row).value());
      if (!row.ok())
        return row.status().Annotate(fmt::format("{}, {}", path.string(), reader->Place()));
      rows.push_back(std::move(row).value());
    }
    if (!labels.empty() && labels.size() != rows.size()) {
      return InvalidArgument(
          fmt::format("{} has {} rows, the file of their answers beside it ({}) {}", path.string(),
                      rows.size(), task.label_suffix, labels.size()));
    }
  }
  if (rows.empty()) return InvalidArgument(fmt::format("{} has no rows", path.string()));
  return rows;
}

}  // namespace octavo
