// SHA-256 of files and texts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace octavo {

// As 64 hexadecimal digits. The file is read in pieces.
Result<std::string> Sha256OfFile(const std::filesystem::path& path);
std::string Sha256OfText(std::string_view text);

}  // namespace octavo
