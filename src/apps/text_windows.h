// What `perplexity` and `compare` share: a text file in windows of tokens; and chats, one a window.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "eval/windows.h"
#include "octavo/dataset_options.h"

namespace octavo {

struct TextWindowFlags {
  std::string text;
  WindowOptions windows;                         // but for the stride
  std::optional<int64_t> stride = std::nullopt;  // none: no overlap
  bool bos = false;

  // As `windows`, with the stride; without the BOS token, which the model names.
  WindowOptions Cut() const;
};

// --text, which the caller may require, and how it is cut.
void AddTextWindowFlags(CLI::App& app, TextWindowFlags* flags);

// Tokenizes the file in one piece, without special tokens, and cuts it.
Result<std::vector<Window>> ReadTextWindows(const TextWindowFlags& flags,
                                            const std::string& model_folder);

// The rows of a data set as `quantize --calibration` reads them, one a window, all of whose
// positions are scored.
Result<std::vector<Window>> ReadRowWindows(const std::string& path, const DatasetOptions& options,
                                           const std::string& model_folder);

}  // namespace octavo
