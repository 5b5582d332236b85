// Methods of lists, tuples, dicts and numbers (methods.inc).
#include <algorithm>
#include <cmath>

#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"

namespace octavo::jinja {

namespace {

Result<Value> View(Runtime& runtime, const Dict& dict, ListKind kind) {
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(3 * dict.size()));
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries()) {
    items.push_back(kind == ListKind::kKeys     ? key
                    : kind == ListKind::kValues ? value
                                                : Value::MakeTuple({key, value}));
  }
  return Value::MakeList(std::move(items), kind);
}

}  // namespace

Result<Value> ListCopy(Runtime&, const Value& self, BoundArguments&) {
  return self;  // lists never change
}

Result<Value> ListCount(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  const auto& items = self.as_list().items;
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSteps(static_cast<int64_t>(items.size())));
  return Value::Int(std::count_if(items.begin(), items.end(),
                                  [&](const Value& item) { return Equal(item, arguments[0]); }));
}

Result<Value> ListIndex(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  if (arguments.Has(1)) return Unsupported("index of a list with start or stop");
  const auto& items = self.as_list().items;
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSteps(static_cast<int64_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i) {
    if (Equal(items[i], arguments[0])) return Value::Int(static_cast<int64_t>(i));
  }
  return InvalidArgument("the value of index() is not in the list");
}

Result<Value> DictCopy(Runtime&, const Value& self, BoundArguments&) {
  return self;
}

Result<Value> DictGet(Runtime&, const Value& self, BoundArguments& arguments) {
  if (!IsHashable(arguments[0])) return TypeError("get: the key is not hashable");
  const Value* found = self.as_dict().Find(arguments[0]);
  if (found != nullptr) return *found;
  return arguments.Has(1) ? arguments[1] : Value::None();
}

Result<Value> DictItems(Runtime& runtime, const Value& self, BoundArguments&) {
  return View(runtime, self.as_dict(), ListKind::kItems);
}

Result<Value> DictKeys(Runtime& runtime, const Value& self, BoundArguments&) {
  return View(runtime, self.as_dict(), ListKind::kKeys);
}

Result<Value> DictValues(Runtime& runtime, const Value& self, BoundArguments&) {
  return View(runtime, self.as_dict(), ListKind::kValues);
}

Result<Value> IntBitLength(Runtime&, const Value& self, BoundArguments&) {
  const int64_t value = self.as_int();
  uint64_t rest = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  int64_t bits = 0;
  for (; rest != 0; rest >>= 1) ++bits;
  return Value::Int(bits);
}

Result<Value> FloatIsInteger(Runtime&, const Value& self, BoundArguments&) {
  const double value = self.as_double();
  return Value::Bool(std::isfinite(value) && value == std::floor(value));
}

}  // namespace octavo::jinja
