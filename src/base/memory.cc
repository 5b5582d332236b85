#include "base/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace octavo {

namespace {

// The number behind `key` at the start of a line; an empty key: the file's first word.
std::optional<int64_t> ReadNumber(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(' ', key.size());
    if (begin == std::string::npos) return std::nullopt;
    int64_t number = 0;
    const char* first = line.data() + begin;
    // "max" is no number: there is no limit.
    if (std::from_chars(first, line.data() + line.size(), number).ec != std::errc())
      return std::nullopt;
    return number;
  }
  return std::nullopt;
}

struct GroupFiles {
  std::string_view limit, used, droppable;
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file "};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file "};

// What is left to a group.
std::optional<int64_t> Left(const std::filesystem::path& group, const GroupFiles& files) {
  const auto limit = ReadNumber(group / files.limit, "");
  const auto used = ReadNumber(group / files.used, "");
  if (!limit || !used) return std::nullopt;
  const int64_t droppable = ReadNumber(group / "memory.stat", files.droppable).value_or(0);
  return std::max<int64_t>(0, *limit - *used + std::min(droppable, *used));
}

// The least that is left to the group `path` below `mount` or one that it is in.
std::optional<int64_t> LeastLeft(const std::filesystem::path& mount, std::filesystem::path path,
                                 const GroupFiles& files) {
  std::optional<int64_t> least;
  while (true) {
    const auto left = Left(mount / path.relative_path(), files);
    if (left) least = std::min(least.value_or(*left), *left);
    if (!path.has_relative_path()) return least;
    path = path.parent_path();
  }
}

}  // namespace

std::optional<int64_t> FreeMemory(const std::filesystem::path& root) {
  constexpr int64_t kKibi = 1024;
  std::optional<int64_t> free = ReadNumber(root / "proc/meminfo", "MemAvailable:");
  if (free) *free *= kKibi;
  // Lines are "hierarchy:controllers:path"; version 2 has no controllers there.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    std::optional<int64_t> left;
    if (controllers.empty()) left = LeastLeft(root / "sys/fs/cgroup", path, kVersion2);
    if (controllers == "memory") left = LeastLeft(root / "sys/fs/cgroup/memory", path, kVersion1);
    if (left) free = std::min(free.value_or(*left), *left);
  }
  return free;
}

}  // namespace octavo
