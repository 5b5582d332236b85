// A task of one's own: a file in lm-evaluation-harness's YAML.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "eval/task_definition.h"

namespace octavo {

// Of the plain kinds: multiple_choice, generate_until, loglikelihood, loglikelihood_rolling, with
// Jinja templates. Data are the files of dataset_kwargs.data_files (beside the YAML, or below the
// data folder), else <task>/<split>.jsonl. Unsupported names a key that asks for more: Python
// functions, includes, groups, images.
Result<TaskDefinition> ReadTaskFile(const std::filesystem::path& path);

}  // namespace octavo
