// Writes a file for a test, without the syncs that make WriteFileAtomically slow (and ext4 syncs a
// file that is truncated and written again).
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string_view>

namespace octavo::testing {

inline void WriteFile(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(file.flush().good()) << path;
}

}  // namespace octavo::testing
