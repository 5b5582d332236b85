// Whole files: read within a limit, written so that a reader never sees half of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace octavo {

// The bytes of a regular file of at most `max_bytes`. NotFound, Io, or CorruptFile when it is
// larger.
Result<std::string> ReadFile(const std::filesystem::path& path,
                             int64_t max_bytes = int64_t{1} << 30);

// Writes beside the target, syncs, and renames into place; on an error nothing of it is left.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

}  // namespace octavo
