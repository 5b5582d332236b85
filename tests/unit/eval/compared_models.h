// The small checkpoints of tests/data/checkpoints, which llm-compressor made of one original,
// loaded side by side.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "eval/windows.h"
#include "runtime/load.h"
#include "support/golden_files.h"

namespace octavo::testing {

// `name` without the golden tensors that lie beside the weights.
inline std::unique_ptr<LoadedModel> LoadAlone(const std::string& name, const Context& context) {
  const TemporaryFolder copy;
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(TestData("checkpoints/" + name) / file, copy.path() / file);
  return LoadModel(copy.path(), {}, context).value();
}

// Windows of tokens below 128, the checkpoints' vocabulary.
inline std::vector<Window> SomeWindows() {
  std::vector<Window> windows(3);
  int32_t token = 5;
  for (Window& window : windows) {
    for (int i = 0; i < 40; ++i) {
      token = (token * 37 + 11) % 128;
      window.tokens.push_back(token);
    }
    token += 3;
  }
  return windows;
}

}  // namespace octavo::testing
