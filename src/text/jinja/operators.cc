#include "text/jinja/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

Status UseOfUndefined(const Value& value) {
  return InvalidArgument(value.undefined_reason());
}

std::string_view Symbol(BinaryOperator op) {
  static constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return kSymbols[static_cast<size_t>(op)];
}

Status Overflow() {
  return Unsupported("an integer beyond 64 bits");
}

Result<Value> IntPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return InvalidArgument("0 cannot be raised to a negative power");
    return Value::Float(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value::Int(exponent == 0 ? 1 : base);
  if (base == -1) return Value::Int(exponent % 2 == 0 ? 1 : -1);
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {  // at most 63 rounds before it overflows
    if (__builtin_mul_overflow(result, base, &result)) return Overflow();
  }
  return Value::Int(result);
}

Result<Value> IntArithmetic(BinaryOperator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Overflow() : Result<Value>(Value::Int(result));
    case BinaryOperator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? Overflow() : Result<Value>(Value::Int(result));
    case BinaryOperator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? Overflow() : Result<Value>(Value::Int(result));
    case BinaryOperator::kPower:
      return IntPower(a, b);
    default:
      break;
  }
  if (b == 0) return InvalidArgument("division by zero");
  if (op == BinaryOperator::kDivide) {
    return Value::Float(
        static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
  }
  if (b == -1) {
    if (op == BinaryOperator::kModulo) return Value::Int(0);
    return __builtin_sub_overflow(int64_t{0}, a, &result) ? Overflow()
                                                          : Result<Value>(Value::Int(result));
  }
  int64_t quotient = a / b;
  int64_t remainder = a % b;
  if (remainder != 0 && (remainder < 0) != (b < 0)) {  // Python rounds down
    --quotient;
    remainder += b;
  }
  return Value::Int(op == BinaryOperator::kFloorDivide ? quotient : remainder);
}

Result<Value> FloatArithmetic(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value::Float(a + b);
    case BinaryOperator::kSubtract:
      return Value::Float(a - b);
    case BinaryOperator::kMultiply:
      return Value::Float(a * b);
    case BinaryOperator::kPower: {
      if (a == 0 && b < 0) return InvalidArgument("0.0 cannot be raised to a negative power");
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        return Unsupported("a complex number");
      }
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        return InvalidArgument("the result of ** is too large");
      }
      return Value::Float(result);
    }
    default:
      break;
  }
  if (b == 0) return InvalidArgument("division by zero");
  if (op == BinaryOperator::kDivide) return Value::Float(a / b);
  double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      quotient -= 1;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (op == BinaryOperator::kModulo) return Value::Float(remainder);
  if (quotient == 0) return Value::Float(std::copysign(0.0, a / b));
  double floored = std::floor(quotient);
  if (quotient - floored > 0.5) floored += 1;
  return Value::Float(floored);
}

Result<Value> AddSequences(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string()) {
    // Markup escapes what it meets.
    const bool markup = a.is_markup() || b.is_markup();
    const std::string& left = a.as_string();
    const std::string& right = b.as_string();
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(left.size() + right.size())));
    if (!markup) return Value::String(left + right);
    return Value::String(
        (a.is_markup() ? left : EscapeHtml(left)) + (b.is_markup() ? right : EscapeHtml(right)),
        true);
  }
  const List& left = a.as_list();
  const List& right = b.as_list();
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(left.items.size() + right.items.size()));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return Value::MakeList(std::move(items), left.kind);
}

Result<Value> Repeat(Runtime& runtime, const Value& sequence, int64_t count) {
  count = std::max<int64_t>(count, 0);
  const auto size = static_cast<int64_t>(sequence.is_string() ? sequence.as_string().size()
                                                              : sequence.as_list().items.size());
  int64_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) total = INT64_MAX / 2;
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(total));
  if (sequence.is_string()) {
    std::string text;
    text.reserve(static_cast<size_t>(total));
    for (int64_t i = 0; total > 0 && i < count; ++i) text += sequence.as_string();
    return Value::String(std::move(text), sequence.is_markup());
  }
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(static_cast<size_t>(total)));
  const List& list = sequence.as_list();
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(total));
  for (int64_t i = 0; total > 0 && i < count; ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return Value::MakeList(std::move(items), list.kind);
}

bool IsListOrTuple(const Value& value) {
  return value.is_list(ListKind::kList) || value.is_list(ListKind::kTuple);
}

template <typename T>
bool Ordered(Comparison op, const T& a, const T& b) {
  switch (op) {
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

Result<bool> CompareOrder(Runtime& runtime, Comparison op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return Ordered(op, a.as_int(), b.as_int());
    const auto wide = [](const Value& v) {
      return v.is_float() ? static_cast<long double>(v.as_double())
                          : static_cast<long double>(v.as_int());
    };
    return Ordered(op, wide(a), wide(b));
  }
  // UTF-8 sorts bytewise as its code points do.
  if (a.is_string() && b.is_string()) return Ordered(op, a.as_string(), b.as_string());
  if (IsListOrTuple(a) && IsListOrTuple(b) && a.as_list().kind == b.as_list().kind) {
    const auto& left = a.as_list().items;
    const auto& right = b.as_list().items;
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      OCTAVO_RETURN_IF_ERROR(runtime.ChargeSteps(1));
      if (!Equal(left[i], right[i])) return CompareOrder(runtime, op, left[i], right[i]);
    }
    return Ordered(op, left.size(), right.size());
  }
  if (a.is_undefined()) return UseOfUndefined(a);
  if (b.is_undefined()) return UseOfUndefined(b);
  static constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
  return TypeError(fmt::format("'{}' not supported between instances of '{}' and '{}'",
                               kSymbols[static_cast<size_t>(op)], a.type_name(), b.type_name()));
}

Result<bool> Contains(Runtime& runtime, const Value& item, const Value& container) {
  if (container.is_string()) {
    if (item.is_undefined()) return UseOfUndefined(item);
    if (!item.is_string()) {
      return TypeError(
          fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeSearch(container.as_string(), item.as_string()));
    return container.as_string().find(item.as_string()) != std::string::npos;
  }
  if (container.is_dict()) {
    if (!IsHashable(item)) {
      return TypeError(fmt::format("unhashable type: '{}'", item.type_name()));
    }
    return container.as_dict().Find(item) != nullptr;
  }
  if (!container.is_list() && !container.is_undefined() && container.As<Iterator>() == nullptr) {
    return TypeError(fmt::format("argument of type '{}' is not iterable", container.type_name()));
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, container));
  return std::any_of(items.begin(), items.end(), [&](const Value& v) { return Equal(v, item); });
}

// Comparing big values again and again is work too.
Status ChargeComparison(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    return runtime.ChargeBytes(static_cast<int64_t>(a.as_string().size() / 4));
  }
  if (!a.is_list() && !a.is_dict()) return OkStatus();
  if (!b.is_list() && !b.is_dict()) return OkStatus();
  const size_t size = a.is_list() ? a.as_list().items.size() : a.as_dict().size();
  return runtime.ChargeSteps(static_cast<int64_t>(size));
}

// The place in a sequence of `size` that a key means, or -1.
int64_t IndexOf(const Value& key, size_t size) {
  if (!key.is_integral()) return -1;
  const auto count = static_cast<int64_t>(size);
  const int64_t index = key.as_int() < 0 ? key.as_int() + count : key.as_int();
  return index >= 0 && index < count ? index : -1;
}

// value[key] without any fall back; false: there is no such item.
Result<bool> FindItem(Runtime& runtime, const Value& value, const Value& key, Value* item) {
  if (value.is_dict()) {
    if (!IsHashable(key)) return false;
    const Value* found = value.as_dict().Find(key);
    if (found != nullptr) *item = *found;
    return found != nullptr;
  }
  if (value.is_string()) {
    const std::string& text = value.as_string();
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(text.size() / 4)));
    const int64_t index = IndexOf(key, static_cast<size_t>(CountCodePoints(text)));
    if (index < 0) return false;
    size_t at = 0;
    for (int64_t i = 0; i < index; ++i) NextCodePoint(text, &at);
    const size_t start = at;
    NextCodePoint(text, &at);
    *item = Value::String(text.substr(start, at - start), value.is_markup());
    return true;
  }
  if (value.is_list()) {
    const List& list = value.as_list();
    if (list.kind != ListKind::kList && list.kind != ListKind::kTuple &&
        list.kind != ListKind::kRange) {
      return false;
    }
    const int64_t index = IndexOf(key, list.items.size());
    if (index < 0) return false;
    *item = list.items[static_cast<size_t>(index)];
    return true;
  }
  return false;
}

std::string MissingAttribute(const Value& value, std::string_view name) {
  std::string_view type = value.type_name();
  return value.is_none() ? fmt::format("'None' has no attribute '{}'", name)
                         : fmt::format("'{} object' has no attribute '{}'", type, name);
}

// Python's rule for one bound of a slice over `size` items.
Result<int64_t> SliceBound(const Value& bound, int64_t fallback, int64_t size, bool backwards) {
  if (bound.is_none()) return fallback;
  if (!bound.is_integral()) return TypeError("slice indices must be integers or None");
  int64_t index = bound.as_int();
  if (index < 0) index = std::max<int64_t>(index + size, backwards ? -1 : 0);
  return std::min<int64_t>(index, backwards ? size - 1 : size);
}

}  // namespace

Status TypeError(std::string message) {
  return InvalidArgument(std::move(message));
}

Result<Value> Apply(Runtime& runtime, BinaryOperator op, const Value& a, const Value& b) {
  if (op == BinaryOperator::kModulo && a.is_string()) return PercentFormat(runtime, a, b);
  if (a.is_integral() && b.is_integral()) return IntArithmetic(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return FloatArithmetic(op, a.as_double(), b.as_double());
  if (a.is_undefined()) return UseOfUndefined(a);
  if (b.is_undefined()) return UseOfUndefined(b);
  if (op == BinaryOperator::kAdd) {
    if (a.is_string() && b.is_string()) return AddSequences(runtime, a, b);
    if (IsListOrTuple(a) && IsListOrTuple(b) && a.as_list().kind == b.as_list().kind) {
      return AddSequences(runtime, a, b);
    }
    if (a.is_string()) {
      return TypeError(fmt::format("can only concatenate str (not \"{}\") to str", b.type_name()));
    }
  }
  if (op == BinaryOperator::kMultiply) {
    if ((a.is_string() || IsListOrTuple(a)) && b.is_integral()) {
      return Repeat(runtime, a, b.as_int());
    }
    if ((b.is_string() || IsListOrTuple(b)) && a.is_integral()) {
      return Repeat(runtime, b, a.as_int());
    }
  }
  return TypeError(fmt::format("unsupported operand types for {}: '{}' and '{}'", Symbol(op),
                               a.type_name(), b.type_name()));
}

Result<Value> Negate(const Value& value) {
  if (value.is_integral()) return IntArithmetic(BinaryOperator::kSubtract, 0, value.as_int());
  if (value.is_float()) return Value::Float(-value.as_double());
  if (value.is_undefined()) return UseOfUndefined(value);
  return TypeError(fmt::format("bad operand type for unary -: '{}'", value.type_name()));
}

Result<Value> Positive(const Value& value) {
  if (value.is_integral()) return Value::Int(value.as_int());
  if (value.is_float()) return value;
  if (value.is_undefined()) return UseOfUndefined(value);
  return TypeError(fmt::format("bad operand type for unary +: '{}'", value.type_name()));
}

Result<bool> Compare(Runtime& runtime, Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::kEqual:
    case Comparison::kNotEqual:
      OCTAVO_RETURN_IF_ERROR(ChargeComparison(runtime, a, b));
      return Equal(a, b) == (op == Comparison::kEqual);
    case Comparison::kIn:
      return Contains(runtime, a, b);
    case Comparison::kNotIn: {
      OCTAVO_ASSIGN_OR_RETURN(const bool contains, Contains(runtime, a, b));
      return !contains;
    }
    default:
      return CompareOrder(runtime, op, a, b);
  }
}

Result<bool> Less(Runtime& runtime, const Value& a, const Value& b) {
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSteps(1));
  return CompareOrder(runtime, Comparison::kLess, a, b);
}

Result<std::vector<Value>> Iterate(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) return items;
  if (value.is_list()) {
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(value.as_list().items.size()));
    return value.as_list().items;
  }
  if (value.is_dict()) {
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(value.as_dict().size()));
    for (const auto& entry : value.as_dict().entries()) items.push_back(entry.first);
    return items;
  }
  if (value.is_string()) {
    const std::string& text = value.as_string();
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(2 * text.size()));
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      NextCodePoint(text, &at);
      items.push_back(Value::String(text.substr(start, at - start)));
    }
    return items;
  }
  if (auto* iterator = value.As<Iterator>()) {
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(iterator->items.size() - iterator->next));
    items.assign(iterator->items.begin() + static_cast<std::ptrdiff_t>(iterator->next),
                 iterator->items.end());
    iterator->next = iterator->items.size();
    return items;
  }
  return TypeError(fmt::format("'{}' object is not iterable", value.type_name()));
}

Result<int64_t> Length(const Value& value) {
  if (value.is_undefined()) return int64_t{0};
  if (value.is_string()) return CountCodePoints(value.as_string());
  if (value.is_list()) return static_cast<int64_t>(value.as_list().items.size());
  if (value.is_dict()) return static_cast<int64_t>(value.as_dict().size());
  return TypeError(fmt::format("object of type '{}' has no len()", value.type_name()));
}

Result<Value> GetAttribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is_undefined()) return UseOfUndefined(value);
  Value found;
  OCTAVO_ASSIGN_OR_RETURN(const AttributeKind kind, FindAttribute(value, name, &found));
  if (kind == AttributeKind::kFound) return found;
  if (kind == AttributeKind::kForbidden) {
    return Value::UndefinedBecause(
        fmt::format("access to attribute '{}' of '{}' object is unsafe", name, value.type_name()));
  }
  OCTAVO_ASSIGN_OR_RETURN(const bool has_item,
                          FindItem(runtime, value, Value::String(std::string(name)), &found));
  return has_item ? found : Value::UndefinedBecause(MissingAttribute(value, name));
}

Result<Value> GetItem(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is_undefined()) return UseOfUndefined(value);
  Value found;
  OCTAVO_ASSIGN_OR_RETURN(const bool has_item, FindItem(runtime, value, key, &found));
  if (has_item) return found;
  if (key.is_string()) {
    OCTAVO_ASSIGN_OR_RETURN(const AttributeKind kind,
                            FindAttribute(value, key.as_string(), &found));
    if (kind == AttributeKind::kFound) return found;
    return Value::UndefinedBecause(MissingAttribute(value, key.as_string()));
  }
  OCTAVO_ASSIGN_OR_RETURN(const std::string shown, ToRepr(runtime, key));
  return Value::UndefinedBecause(
      fmt::format("{} object has no element {}", value.type_name(), shown));
}

Result<Value> Slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                    const Value& step_value) {
  if (value.is_undefined()) return UseOfUndefined(value);
  const bool sliceable =
      value.is_string() || IsListOrTuple(value) || value.is_list(ListKind::kRange);
  if (!sliceable) {
    return Value::UndefinedBecause(fmt::format("{} object cannot be sliced", value.type_name()));
  }
  if (!step_value.is_none() && !step_value.is_integral()) {
    return TypeError("slice indices must be integers or None");
  }
  const int64_t step = step_value.is_none() ? 1 : step_value.as_int();
  if (step == 0) return InvalidArgument("slice step cannot be zero");
  if (value.is_list(ListKind::kRange)) {
    return Unsupported("a slice of a range (make it a list first: range(n) | list)");
  }
  OCTAVO_ASSIGN_OR_RETURN(const int64_t size, Length(value));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(12 * size));
  const bool backwards = step < 0;
  OCTAVO_ASSIGN_OR_RETURN(const int64_t first,
                          SliceBound(start, backwards ? size - 1 : 0, size, backwards));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t last,
                          SliceBound(stop, backwards ? -1 : size, size, backwards));
  std::vector<size_t> places;
  for (int64_t i = first; backwards ? i > last : i < last;) {
    places.push_back(static_cast<size_t>(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (value.is_string()) {
    const std::u32string codes = ToCodePoints(value.as_string());
    std::string text;
    for (size_t place : places) AppendUtf8(codes[place], text);
    return Value::String(std::move(text), value.is_markup());
  }
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(places.size()));
  std::vector<Value> items;
  items.reserve(places.size());
  for (size_t place : places) items.push_back(value.as_list().items[place]);
  return Value::MakeList(std::move(items), value.as_list().kind);
}

}  // namespace octavo::jinja
