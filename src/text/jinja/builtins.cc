#include "text/jinja/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace octavo::jinja {

// Each name in the lists is a function in one of the files filters_*.cc, tests.cc, methods_*.cc and
// functions.cc.
#define JINJA_DECLARE(function) Result<Value> function(Runtime&, const Value&, BoundArguments&);
#define JINJA_FILTER(name, function, signature) JINJA_DECLARE(function)
#include "text/jinja/filters.inc"
#undef JINJA_FILTER
#define JINJA_TEST(name, function, signature) JINJA_DECLARE(function)
#include "text/jinja/tests.inc"
#undef JINJA_TEST
#define JINJA_FUNCTION(name, function, signature) JINJA_DECLARE(function)
#include "text/jinja/functions.inc"
#undef JINJA_FUNCTION
#define JINJA_METHOD(type, name, function, signature, markup) JINJA_DECLARE(function)
#include "text/jinja/methods.inc"
#undef JINJA_METHOD
#undef JINJA_DECLARE

namespace {

constexpr Builtin kFilters[] = {
#define JINJA_FILTER(name, function, signature) {name, function, signature},
#include "text/jinja/filters.inc"
#undef JINJA_FILTER
};

constexpr Builtin kTests[] = {
#define JINJA_TEST(name, function, signature) {name, function, signature},
#include "text/jinja/tests.inc"
#undef JINJA_TEST
};

constexpr Builtin kFunctions[] = {
#define JINJA_FUNCTION(name, function, signature) {name, function, signature},
#include "text/jinja/functions.inc"
#undef JINJA_FUNCTION
};

enum MethodType { kString, kList, kTuple, kDict, kInt, kFloat, kNoMethods };
enum MarkupRule { kPlain, kWraps, kEscapes };

struct Method {
  MethodType type;
  Builtin builtin;
  MarkupRule markup;
};

constexpr Method kMethods[] = {
#define JINJA_METHOD(type, name, function, signature, markup) \
  {type, {name, function, signature}, markup},
#include "text/jinja/methods.inc"
#undef JINJA_METHOD
};

// Attributes that Python has and we do not: their use is an error, not "undefined".
constexpr std::string_view kMissingMethods[] = {"encode",    "isidentifier", "isprintable",
                                                "maketrans", "translate",  // of str
                                                "unescape",  "striptags",  // of Markup
                                                "fromkeys"};
constexpr std::string_view kMissingNumberAttributes[] = {
    "real",      "imag",     "numerator",  "denominator", "conjugate", "as_integer_ratio",
    "bit_count", "to_bytes", "from_bytes", "hex",         "fromhex"};
// Methods that would change a list or dict: the sandbox refuses them.
constexpr std::string_view kForbiddenListMethods[] = {"append", "clear", "pop",    "reverse",
                                                      "insert", "sort",  "extend", "remove"};
constexpr std::string_view kForbiddenDictMethods[] = {"clear", "pop", "popitem", "setdefault",
                                                      "update"};
// What every Python object has; other names of that form are absent.
constexpr std::string_view kDunders[] = {
    "__class__",        "__contains__", "__delattr__", "__delitem__",   "__dir__",
    "__doc__",          "__eq__",       "__format__",  "__ge__",        "__getattribute__",
    "__getitem__",      "__gt__",       "__hash__",    "__init__",      "__init_subclass__",
    "__iter__",         "__le__",       "__len__",     "__lt__",        "__ne__",
    "__new__",          "__or__",       "__reduce__",  "__reduce_ex__", "__repr__",
    "__reversed__",     "__setattr__",  "__setitem__", "__sizeof__",    "__str__",
    "__subclasshook__", "__add__",      "__mul__",     "__rmul__",      "__mod__",
    "__call__",         "__globals__",  "__ior__",     "__ror__",       "__class_getitem__"};

template <typename Names>
bool IsIn(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

template <typename Table>
const Builtin* FindIn(const Table& table, std::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table),
                                   [&](const Builtin& row) { return row.name == name; });
  return found == std::end(table) ? nullptr : found;
}

MethodType TypeOf(const Value& value) {
  if (value.is_string()) return kString;
  if (value.is_list(ListKind::kList)) return kList;
  if (value.is_list(ListKind::kTuple)) return kTuple;
  if (value.is_dict()) return kDict;
  if (value.is_integral()) return kInt;
  return value.is_float() ? kFloat : kNoMethods;
}

class FunctionObject : public CallableObject {
 public:
  explicit FunctionObject(const Builtin& builtin) : builtin_(builtin) {}
  std::string_view type_name() const override { return "function"; }
  Result<Value> Call(Runtime& runtime, Arguments arguments) override {
    return builtin_.Call(runtime, Value::None(), std::move(arguments));
  }

 private:
  const Builtin& builtin_;
};

Value Escaped(const Value& value) {
  return value.is_string() && !value.is_markup()
             ? Value::String(EscapeHtml(value.as_string()), true)
             : value;
}

// Marks strings and the strings in a list.
Value Marked(const Value& value) {
  if (value.is_string()) return Value::String(value.as_string(), true);
  if (!value.is_list()) return value;
  std::vector<Value> items;
  for (const Value& item : value.as_list().items) items.push_back(Marked(item));
  return Value::MakeList(std::move(items), value.as_list().kind);
}

class MethodObject : public CallableObject {
 public:
  MethodObject(const Method& method, Value self) : method_(method), self_(std::move(self)) {}
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  int depth() const override { return self_.depth() + 1; }

  Result<Value> Call(Runtime& runtime, Arguments arguments) override {
    const bool markup = self_.is_markup() && method_.markup != kPlain;
    if (markup && method_.markup == kEscapes) {
      OCTAVO_RETURN_IF_ERROR(EscapeArguments(runtime, &arguments));
    }
    OCTAVO_ASSIGN_OR_RETURN(Value result,
                            method_.builtin.Call(runtime, self_, std::move(arguments)));
    return markup ? Marked(result) : result;
  }

 private:
  static Status EscapeArguments(Runtime& runtime, Arguments* arguments) {
    for (Value& argument : arguments->positional) {
      if (argument.is_list()) {  // of join
        OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(runtime, argument));
        for (Value& item : items) item = Escaped(item);
        argument = Value::MakeList(std::move(items));
      } else {
        argument = Escaped(argument);
      }
    }
    return OkStatus();
  }

  const Method& method_;
  Value self_;
};

struct Parameter {
  std::string_view name;
  bool required;
};

// A signature taken apart.
struct Signature {
  std::array<Parameter, 6> parameters{};
  size_t count = 0;
  size_t positional_only = 0;
  bool rest = false;
  bool named_rest = false;

  explicit Signature(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(' '), text.size());
      std::string_view word = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (word == "*") {
        rest = true;
      } else if (word == "**") {
        named_rest = true;
      } else if (word == "/") {
        positional_only = count;
      } else {
        const bool required = word.back() == '!';
        if (required) word.remove_suffix(1);
        parameters[count++] = {word, required};
      }
    }
  }

  // The place of a parameter given by name, or count.
  size_t Find(std::string_view name) const {
    for (size_t i = positional_only; i < count; ++i) {
      if (parameters[i].name == name) return i;
    }
    return count;
  }
};

// All text that is read costs something, so that no call is free of charge.
Status ChargeText(Runtime& runtime, const Value& value) {
  if (!value.is_string()) return OkStatus();
  return runtime.ChargeBytes(static_cast<int64_t>(value.as_string().size() / 4 + 1));
}

}  // namespace

Result<int64_t> BoundArguments::Int(size_t place, int64_t fallback) const {
  if (!Has(place) || values_[place].is_none()) return fallback;
  if (values_[place].is_integral()) return values_[place].as_int();
  if (values_[place].is_undefined()) return InvalidArgument(values_[place].undefined_reason());
  return TypeError(
      fmt::format("'{}' object cannot be interpreted as an integer", values_[place].type_name()));
}

Result<std::string> BoundArguments::Text(size_t place, std::string_view fallback) const {
  if (!Has(place) || values_[place].is_none()) return std::string(fallback);
  if (values_[place].is_string()) return values_[place].as_string();
  if (values_[place].is_undefined()) return InvalidArgument(values_[place].undefined_reason());
  return TypeError(fmt::format("expected a string, not '{}'", values_[place].type_name()));
}

bool BoundArguments::Truthy(size_t place, bool fallback) const {
  return Has(place) ? values_[place].Truthy() : fallback;
}

Result<Value> Builtin::Call(Runtime& runtime, const Value& self, Arguments arguments) const {
  const Signature expected(signature);
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSteps(1));
  OCTAVO_RETURN_IF_ERROR(ChargeText(runtime, self));
  BoundArguments bound;
  bound.values_.resize(expected.count);
  bound.has_.resize(expected.count);
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    OCTAVO_RETURN_IF_ERROR(ChargeText(runtime, arguments.positional[i]));
    if (i < expected.count) {
      bound.values_[i] = std::move(arguments.positional[i]);
      bound.has_[i] = true;
    } else if (expected.rest) {
      bound.rest.push_back(std::move(arguments.positional[i]));
    } else {
      return TypeError(fmt::format("{}() takes at most {} arguments", name, expected.count));
    }
  }
  for (auto& [given, value] : arguments.named) {
    const size_t place = expected.Find(given);
    if (place < expected.count && !bound.has_[place]) {
      bound.values_[place] = std::move(value);
      bound.has_[place] = true;
    } else if (place < expected.count) {
      return TypeError(fmt::format("{}() got two values for '{}'", name, given));
    } else if (expected.named_rest) {
      bound.named.emplace_back(given, std::move(value));
    } else {
      return TypeError(fmt::format("{}() got an unexpected keyword argument '{}'", name, given));
    }
  }
  for (size_t i = 0; i < expected.count; ++i) {
    if (expected.parameters[i].required && !bound.has_[i]) {
      return TypeError(
          fmt::format("{}() misses the argument '{}'", name, expected.parameters[i].name));
    }
  }
  return function(runtime, self, bound);
}

const Builtin* FindFilter(std::string_view name) {
  return FindIn(kFilters, name);
}

const Builtin* FindTest(std::string_view name) {
  return FindIn(kTests, name);
}

Value FindGlobal(std::string_view name) {
  const Builtin* found = FindIn(kFunctions, name);
  return found == nullptr ? Value() : Value::MakeObject(std::make_shared<FunctionObject>(*found));
}

Result<Value> CallFilter(Runtime& runtime, std::string_view name, const Value& self,
                         Arguments arguments) {
  const Builtin* filter = FindFilter(name);
  if (filter == nullptr) return InvalidArgument(fmt::format("no filter named '{}'", name));
  return filter->Call(runtime, self, std::move(arguments));
}

Result<bool> CallTest(Runtime& runtime, std::string_view name, const Value& self,
                      Arguments arguments) {
  const Builtin* test = FindTest(name);
  if (test == nullptr) return InvalidArgument(fmt::format("no test named '{}'", name));
  OCTAVO_ASSIGN_OR_RETURN(const Value result, test->Call(runtime, self, std::move(arguments)));
  return result.Truthy();
}

Result<AttributeKind> FindAttribute(const Value& value, std::string_view name, Value* found) {
  if (value.is_object()) {
    return value.as_object().GetAttribute(name, found) ? AttributeKind::kFound
                                                       : AttributeKind::kAbsent;
  }
  if (name.starts_with("__")) {
    return IsIn(name, kDunders) ? AttributeKind::kForbidden : AttributeKind::kAbsent;
  }
  if (value.is_list() && value.as_list().is_group && (name == "grouper" || name == "list")) {
    *found = value.as_list().items[name == "list" ? 1 : 0];
    return AttributeKind::kFound;
  }
  const MethodType type = TypeOf(value);
  const auto* method = std::find_if(std::begin(kMethods), std::end(kMethods), [&](const Method& m) {
    return m.type == type && m.builtin.name == name;
  });
  if (method != std::end(kMethods)) {
    *found = Value::MakeObject(std::make_shared<MethodObject>(*method, value));
    return AttributeKind::kFound;
  }
  if ((type == kList && IsIn(name, kForbiddenListMethods)) ||
      (type == kDict && IsIn(name, kForbiddenDictMethods))) {
    return AttributeKind::kForbidden;
  }
  const bool missing = (type == kString && IsIn(name, kMissingMethods)) ||
                       (type == kDict && name == "fromkeys") ||
                       ((type == kInt || type == kFloat) && IsIn(name, kMissingNumberAttributes));
  if (missing) {
    return Unsupported(fmt::format("the attribute '{}' of '{}'", name, value.type_name()));
  }
  return AttributeKind::kAbsent;
}

}  // namespace octavo::jinja
