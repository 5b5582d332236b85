// The files of a checkpoint folder that hold no weights and are handed on unchanged.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace octavo {

// Copies every non-weight file of `source` (tokenizer, vocabulary, chat templates, processor and
// generation configs, Python code, licence) into the existing folder `destination`, byte for byte,
// links followed; a file that is there already is replaced. Left out: config.json, indexes,
// recipe.yaml, README, hidden files, weights of any framework, and subfolders other than
// additional_chat_templates. Returns the names copied, sorted.
Result<std::vector<std::string>> CopyPassiveFiles(const std::filesystem::path& source,
                                                  const std::filesystem::path& destination);

}  // namespace octavo
