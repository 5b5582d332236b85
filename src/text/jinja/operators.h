// Python's operators over values: arithmetic, comparison, membership, indexing, attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace octavo::jinja {

enum class BinaryOperator { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

Result<Value> Apply(Runtime& runtime, BinaryOperator op, const Value& a, const Value& b);
Result<Value> Negate(const Value& value);
Result<Value> Positive(const Value& value);
Result<bool> Compare(Runtime& runtime, Comparison op, const Value& a, const Value& b);
// a < b, as sorting needs it.
Result<bool> Less(Runtime& runtime, const Value& a, const Value& b);

// The items of anything that can be gone through; uses up a generator. "'int' object is not
// iterable" otherwise.
Result<std::vector<Value>> Iterate(Runtime& runtime, const Value& value);
Result<int64_t> Length(const Value& value);

// value.name and value[key] as Jinja's sandbox has them: each falls back to the other, what is
// missing or forbidden is undefined, and only an undefined `value` is an error.
Result<Value> GetAttribute(Runtime& runtime, const Value& value, std::string_view name);
Result<Value> GetItem(Runtime& runtime, const Value& value, const Value& key);
// value[start:stop:step]; each may be none.
Result<Value> Slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                    const Value& step);

// "'str' object is not callable" and the like.
Status TypeError(std::string message);

}  // namespace octavo::jinja
