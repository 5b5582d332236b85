// TokenId: a token's number, as models count them.
#pragma once

#include <cstdint>

namespace octavo {

using TokenId = int32_t;

}  // namespace octavo
