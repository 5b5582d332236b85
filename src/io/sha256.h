// SHA-256 of a file.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"

namespace octavo {

// As 64 hexadecimal digits. The file is read in pieces.
Result<std::string> Sha256OfFile(const std::filesystem::path& path);

}  // namespace octavo
