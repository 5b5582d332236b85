// The data files of tasks: where they are, and their rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "eval/task_definition.h"

namespace octavo {

// The file of a split. NotFound says where it was looked for and where it comes from.
Result<std::filesystem::path> FindSplit(const TaskDefinition& task,
                                        const std::filesystem::path& folder,
                                        const std::string& split);

// All its rows, converted, each with the task's columns. InvalidArgument names the file, the row,
// what was expected and what was found.
Result<std::vector<Value>> ReadSplitFile(const TaskDefinition& task,
                                         const std::filesystem::path& path);

}  // namespace octavo
