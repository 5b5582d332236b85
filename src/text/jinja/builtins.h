// Filters, tests, methods and global functions: how they are declared, found and called.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace octavo::jinja {

// Arguments of a call, as written.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments in the places of a signature.
class BoundArguments {
 public:
  bool Has(size_t place) const { return place < has_.size() && has_[place]; }
  // The argument, or undefined where it was not given.
  const Value& operator[](size_t place) const { return values_[place]; }
  // The same as a type, with a fallback for what was not given (or is none).
  Result<int64_t> Int(size_t place, int64_t fallback) const;
  Result<std::string> Text(size_t place, std::string_view fallback) const;
  bool Truthy(size_t place, bool fallback) const;

  std::vector<Value> rest;                           // "*"
  std::vector<std::pair<std::string, Value>> named;  // "**"

 private:
  friend struct Builtin;
  std::vector<Value> values_;
  std::vector<bool> has_;
};

// One filter (`self` is what stands before the |), test, method (`self` is the object) or function.
// The signature lists parameters in order: "old! new! count" (! required), "/" behind those that
// have no name, "*" and "**" for any more.
struct Builtin {
  using Function = Result<Value>(Runtime& runtime, const Value& self, BoundArguments& arguments);
  std::string_view name;
  Function* function = nullptr;
  std::string_view signature;

  Result<Value> Call(Runtime& runtime, const Value& self, Arguments arguments) const;
};

// Null where there is none of that name.
const Builtin* FindFilter(std::string_view name);
const Builtin* FindTest(std::string_view name);
// A callable value, or undefined.
Value FindGlobal(std::string_view name);

Result<Value> CallFilter(Runtime& runtime, std::string_view name, const Value& self,
                         Arguments arguments);
Result<bool> CallTest(Runtime& runtime, std::string_view name, const Value& self,
                      Arguments arguments);

enum class AttributeKind { kFound, kAbsent, kForbidden };
// What Python's getattr finds and the sandbox lets through: methods above all. Unsupported for
// attributes that Python has and we do not.
Result<AttributeKind> FindAttribute(const Value& value, std::string_view name, Value* found);

// Calls functions, methods and helper objects; macros and loops are the interpreter's.
class CallableObject : public Object {
 public:
  bool callable() const override { return true; }
  virtual Result<Value> Call(Runtime& runtime, Arguments arguments) = 0;
};

}  // namespace octavo::jinja
