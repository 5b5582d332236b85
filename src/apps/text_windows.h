// What `perplexity` and `compare` share: a text file in windows of tokens.
#pragma once

#include <string>
#include <vector>

#include "apps/command.h"
#include "eval/windows.h"

namespace octavo {

struct TextWindowFlags {
  std::string text;
  WindowOptions windows;
  bool bos = false;
};

void AddTextWindowFlags(CLI::App& app, TextWindowFlags* flags);

// Tokenizes the file in one piece, without special tokens, and cuts it.
Result<std::vector<Window>> ReadTextWindows(const TextWindowFlags& flags,
                                            const std::string& model_folder);

}  // namespace octavo
