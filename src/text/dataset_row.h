// One row of a data set as token ids.
#pragma once

#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// The rules of ReadDataset. `row` is an object.
Result<std::vector<TokenId>> EncodeRow(const Value& row, const Tokenizer* tokenizer,
                                       const ChatTemplate* chat_template);

}  // namespace octavo
