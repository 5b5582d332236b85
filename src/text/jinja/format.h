// Python's two ways of formatting text: "%s" % x and "{}".format(x).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace octavo::jinja {

// `arguments`: a tuple of values, a dict for "%(name)s", or one value.
Result<Value> PercentFormat(Runtime& runtime, const Value& format, const Value& arguments);

Result<Value> BraceFormat(Runtime& runtime, const Value& format,
                          const std::vector<Value>& positional,
                          const std::vector<std::pair<std::string, Value>>& named);

}  // namespace octavo::jinja
