// The tests of tests.inc: value is name(arguments).
#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

Result<Value> CompareWith(Runtime& runtime, Comparison op, const Value& self, const Value& other) {
  OCTAVO_ASSIGN_OR_RETURN(const bool holds, Compare(runtime, op, self, other));
  return Value::Bool(holds);
}

Result<Value> RemainderIs(Runtime& runtime, const Value& self, int64_t divisor, int64_t expected) {
  OCTAVO_ASSIGN_OR_RETURN(const Value remainder,
                          Apply(runtime, BinaryOperator::kModulo, self, Value::Int(divisor)));
  return Value::Bool(Equal(remainder, Value::Int(expected)));
}

// Python's islower and isupper: a cased letter, and none of the other case.
bool AllCased(std::string_view text, bool upper) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextCodePoint(text, &at);
    if (!IsCased(code)) continue;
    if (upper ? !IsUpper(code) : !IsLower(code)) return false;
    any = true;
  }
  return any;
}

}  // namespace

#define JINJA_TEST_FUNCTION(name)                                                \
  Result<Value> Test##name([[maybe_unused]] Runtime& runtime, const Value& self, \
                           [[maybe_unused]] BoundArguments& arguments)

JINJA_TEST_FUNCTION(Defined) {
  return Value::Bool(!self.is_undefined());
}
JINJA_TEST_FUNCTION(Undefined) {
  return Value::Bool(self.is_undefined());
}
JINJA_TEST_FUNCTION(None) {
  return Value::Bool(self.is_none());
}
JINJA_TEST_FUNCTION(Boolean) {
  return Value::Bool(self.is_bool());
}
JINJA_TEST_FUNCTION(True) {
  return Value::Bool(self.is_bool() && self.as_bool());
}
JINJA_TEST_FUNCTION(False) {
  return Value::Bool(self.is_bool() && !self.as_bool());
}
JINJA_TEST_FUNCTION(Integer) {
  return Value::Bool(self.is_int());
}
JINJA_TEST_FUNCTION(Float) {
  return Value::Bool(self.is_float());
}
JINJA_TEST_FUNCTION(Number) {
  return Value::Bool(self.is_number());
}
JINJA_TEST_FUNCTION(String) {
  return Value::Bool(self.is_string());
}
JINJA_TEST_FUNCTION(Escaped) {
  return Value::Bool(self.is_markup());
}
JINJA_TEST_FUNCTION(Mapping) {
  return Value::Bool(self.is_dict());
}

JINJA_TEST_FUNCTION(Sequence) {
  const bool indexable = self.is_list(ListKind::kList) || self.is_list(ListKind::kTuple) ||
                         self.is_list(ListKind::kRange);
  return Value::Bool(indexable || self.is_string() || self.is_dict() || self.is_undefined());
}

JINJA_TEST_FUNCTION(Iterable) {
  return Value::Bool(self.is_list() || self.is_string() || self.is_dict() || self.is_undefined() ||
                     self.As<Iterator>() != nullptr);
}

JINJA_TEST_FUNCTION(Callable) {
  return Value::Bool(self.is_object() && self.as_object().callable());
}

JINJA_TEST_FUNCTION(Sameas) {
  return Value::Bool(self.SameAs(arguments[0]));
}

JINJA_TEST_FUNCTION(Eq) {
  return CompareWith(runtime, Comparison::kEqual, self, arguments[0]);
}
JINJA_TEST_FUNCTION(Ne) {
  return CompareWith(runtime, Comparison::kNotEqual, self, arguments[0]);
}
JINJA_TEST_FUNCTION(Lt) {
  return CompareWith(runtime, Comparison::kLess, self, arguments[0]);
}
JINJA_TEST_FUNCTION(Le) {
  return CompareWith(runtime, Comparison::kLessEqual, self, arguments[0]);
}
JINJA_TEST_FUNCTION(Gt) {
  return CompareWith(runtime, Comparison::kGreater, self, arguments[0]);
}
JINJA_TEST_FUNCTION(Ge) {
  return CompareWith(runtime, Comparison::kGreaterEqual, self, arguments[0]);
}
JINJA_TEST_FUNCTION(In) {
  return CompareWith(runtime, Comparison::kIn, self, arguments[0]);
}

JINJA_TEST_FUNCTION(Even) {
  return RemainderIs(runtime, self, 2, 0);
}
JINJA_TEST_FUNCTION(Odd) {
  return RemainderIs(runtime, self, 2, 1);
}
JINJA_TEST_FUNCTION(Divisibleby) {
  OCTAVO_ASSIGN_OR_RETURN(const Value remainder,
                          Apply(runtime, BinaryOperator::kModulo, self, arguments[0]));
  return Value::Bool(Equal(remainder, Value::Int(0)));
}

JINJA_TEST_FUNCTION(Lower) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  return Value::Bool(AllCased(text, false));
}

JINJA_TEST_FUNCTION(Upper) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  return Value::Bool(AllCased(text, true));
}

JINJA_TEST_FUNCTION(Filter) {
  return Value::Bool(self.is_string() && FindFilter(self.as_string()) != nullptr);
}

JINJA_TEST_FUNCTION(Test) {
  return Value::Bool(self.is_string() && FindTest(self.as_string()) != nullptr);
}

}  // namespace octavo::jinja
