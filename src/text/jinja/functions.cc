// The global functions of functions.inc.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"

namespace octavo::jinja {

namespace {

constexpr int64_t kMaxRange = 100'000;  // as Jinja's sandbox

class Cycler : public Object, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(Value items) : items_(std::move(items)) {}
  std::string_view type_name() const override { return "Cycler"; }
  int depth() const override { return items_.depth() + 1; }
  bool GetAttribute(std::string_view name, Value* value) override;
  Value Current() const { return items_.as_list().items[at_]; }
  Value Advance() {
    Value current = Current();
    at_ = (at_ + 1) % items_.as_list().items.size();
    return current;
  }
  Value Reset() {
    at_ = 0;
    return Value::None();
  }

 private:
  Value items_;
  size_t at_ = 0;
};

class CyclerMethod : public CallableObject {
 public:
  CyclerMethod(std::shared_ptr<Cycler> cycler, Value (Cycler::*method)())
      : cycler_(std::move(cycler)), method_(method) {}
  std::string_view type_name() const override { return "method"; }
  int depth() const override { return cycler_->depth() + 1; }
  Result<Value> Call(Runtime&, Arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      return TypeError("the methods of a cycler take no arguments");
    }
    return (cycler_.get()->*method_)();
  }

 private:
  std::shared_ptr<Cycler> cycler_;
  Value (Cycler::*method_)();
};

bool Cycler::GetAttribute(std::string_view name, Value* value) {
  const auto method = [&](Value (Cycler::*function)()) {
    *value = Value::MakeObject(std::make_shared<CyclerMethod>(shared_from_this(), function));
    return true;
  };
  if (name == "next") return method(&Cycler::Advance);
  if (name == "reset") return method(&Cycler::Reset);
  if (name != "current") return false;
  *value = Current();
  return true;
}

// Gives "" at the first call, then the separator.
class Joiner : public CallableObject {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  int depth() const override { return separator_.depth() + 1; }
  Result<Value> Call(Runtime&, Arguments arguments) override {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      return TypeError("a joiner takes no arguments");
    }
    if (std::exchange(used_, true)) return separator_;
    return Value::String("");
  }

 private:
  Value separator_;
  bool used_ = false;
};

// dict(other, a=1): `other` is a mapping or goes through pairs.
Result<Dict> BuildDict(Runtime& runtime, const BoundArguments& arguments) {
  Dict dict;
  if (arguments.rest.size() > 1) return TypeError("dict expected at most 1 argument");
  for (const Value& other : arguments.rest) {
    if (other.is_undefined()) return InvalidArgument(other.undefined_reason());
    if (other.is_dict()) {
      OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(2 * other.as_dict().size()));
      for (const auto& [key, value] : other.as_dict().entries()) dict.Set(key, value);
      continue;
    }
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, other));
    for (const Value& item : items) {
      OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> pair, Iterate(runtime, item));
      if (pair.size() != 2) return InvalidArgument("an item of dict(...) is not a pair");
      if (!IsHashable(pair[0])) {
        return TypeError(fmt::format("unhashable type: '{}'", pair[0].type_name()));
      }
      dict.Set(pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) dict.Set(Value::String(name), value);
  return dict;
}

}  // namespace

Result<Value> FunctionCycler(Runtime&, const Value&, BoundArguments& arguments) {
  if (arguments.rest.empty()) return TypeError("cycler() needs at least one item");
  return Value::MakeObject(std::make_shared<Cycler>(Value::MakeTuple(std::move(arguments.rest))));
}

Result<Value> FunctionJoiner(Runtime&, const Value&, BoundArguments& arguments) {
  return Value::MakeObject(
      std::make_shared<Joiner>(arguments.Has(0) ? arguments[0] : Value::String(", ")));
}

Result<Value> FunctionDict(Runtime& runtime, const Value&, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(Dict dict, BuildDict(runtime, arguments));
  return Value::MakeDict(std::move(dict));
}

Result<Value> FunctionLipsum(Runtime&, const Value&, BoundArguments&) {
  return Unsupported("lipsum() (random text)");
}

Result<Value> FunctionNamespace(Runtime& runtime, const Value&, BoundArguments& arguments) {
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(512));
  auto names = std::make_shared<Namespace>();
  OCTAVO_ASSIGN_OR_RETURN(names->members, BuildDict(runtime, arguments));
  runtime.Keep(names);
  return Value::MakeObject(std::move(names));
}

Result<Value> FunctionRaiseException(Runtime& runtime, const Value&, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string message, ToText(runtime, arguments[0]));
  return InvalidArgument(message);
}

Result<Value> FunctionRange(Runtime& runtime, const Value&, BoundArguments& arguments) {
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    if (!arguments.Has(i)) continue;
    if (!arguments[i].is_integral()) {
      return TypeError(
          fmt::format("'{}' object cannot be interpreted as an integer", arguments[i].type_name()));
    }
    bounds[i] = arguments[i].as_int();
  }
  if (!arguments.Has(1)) std::swap(bounds[0], bounds[1]);
  const auto [start, stop, step] = bounds;
  if (step == 0) return InvalidArgument("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) >= kMaxRange) {
      return InvalidArgument(fmt::format("a range of more than {} items", kMaxRange));
    }
    items.push_back(Value::Int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(items.size()));
  return Value::MakeRange(start, stop, step, std::move(items));
}

Result<Value> FunctionStrftimeNow(Runtime& runtime, const Value&, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string format, arguments.Text(0, ""));
  std::string text;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      text += format[i];
      continue;
    }
    std::string conversion = {'%', format[++i]};
    if (conversion[1] == '-' && i + 1 < format.size()) conversion += format[++i];
    static constexpr std::string_view kKnown = "YmdHMSbBaAjyIpeFTDRuwUWVGgCcxXhnt%kl";
    if (kKnown.find(conversion.back()) == std::string_view::npos) {
      return Unsupported(fmt::format("strftime_now: the conversion {}", conversion));
    }
    char piece[64];
    const size_t size = std::strftime(piece, sizeof(piece), conversion.c_str(), &runtime.now());
    text.append(piece, size);
  }
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(text.size())));
  return Value::String(std::move(text));
}

}  // namespace octavo::jinja
