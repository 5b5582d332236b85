// Whether two checkpoints read text alike, which is what lets their predictions be compared.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/log.h"
#include "base/status.h"

namespace octavo {

// InvalidArgument names the first difference: a token id with both texts, or where `text` becomes
// other tokens. A checkpoint without a tokenizer.json is taken to have its base's, with a warning.
Status CheckSameTokenizer(const std::filesystem::path& base, const std::filesystem::path& model,
                          std::string_view text, Logger& log);

}  // namespace octavo
