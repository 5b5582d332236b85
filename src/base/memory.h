// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace octavo {

// Bytes: what the machine has available (MemAvailable of proc/meminfo), or what is left to a
// control group of this process (version 2 or 1) where that is less; file pages of the group that
// can be dropped count as free. Nothing where neither is known. `root` is that of the file system.
std::optional<int64_t> FreeMemory(const std::filesystem::path& root = "/");

}  // namespace octavo
