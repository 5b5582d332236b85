// What a checkpoint says of the end of a text.
#pragma once

#include <filesystem>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "octavo/generation.h"
#include "text/token_id.h"

namespace octavo {

// The end-of-generation tokens of a checkpoint: "eos_token_id" (a number or a list) of
// generation_config.json, else of config.json.
Result<std::vector<TokenId>> ReadEosTokens(const std::filesystem::path& folder,
                                           const Value& config);

}  // namespace octavo
