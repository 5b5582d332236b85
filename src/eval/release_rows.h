// Rows of the original releases to the columns of the Hugging Face exports, where several tasks
// share the way.
#pragma once

#include <string_view>

#include "base/status.h"
#include "base/value.h"

namespace octavo {

// {"question": {"stem", "choices": [{"text", "label"}]}, ...} to `text_column` and "choices":
// {"text", "label"}, the rest as it is, as AI2's sets are released. Other rows stay.
Result<Value> UnnestQuestion(Value row, std::string_view text_column);

// The column "label" to 0 or 1, from those as text, or true and false. InvalidArgument names what
// it is instead; a row without that column stays.
Result<Value> NumberLabel(Value row);

}  // namespace octavo
