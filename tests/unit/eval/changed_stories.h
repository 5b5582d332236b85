// Copies of stories260k in which one tensor is another.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/golden_files.h"

namespace octavo::testing {

// `folder` is there and empty; `change` gets the tensor's values.
inline void WriteStories(const std::filesystem::path& folder, const std::string& tensor,
                         const std::function<void(std::span<float>)>& change) {
  const auto source = std::filesystem::path(OCTAVO_SOURCE_DIR) / "data/stories260k";
  for (const auto& entry : std::filesystem::directory_iterator(source))
    std::filesystem::copy_file(entry.path(), folder / entry.path().filename());
  std::string bytes = ReadFile(source / "model.safetensors").value();
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const Value json = ParseJson(bytes.substr(sizeof(header), header), "header").value();
  const Value::Array& offsets = json.Find(tensor)->Find("data_offsets")->as_array();
  char* const begin = bytes.data() + sizeof(header) + header + offsets[0].as_int();
  std::vector<float> values(static_cast<size_t>(offsets[1].as_int() - offsets[0].as_int()) /
                            sizeof(float));
  std::memcpy(values.data(), begin, values.size() * sizeof(float));
  change(values);
  std::memcpy(begin, values.data(), values.size() * sizeof(float));
  std::filesystem::remove(folder / "model.safetensors");
  ASSERT_OK(WriteFileAtomically(folder / "model.safetensors", bytes));
}

inline void MakeNan(std::span<float> values) {
  values.front() = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace octavo::testing
