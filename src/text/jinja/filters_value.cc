// Filters of filters.inc over numbers and single values: default, int, round, tojson ...
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/builtins.h"
#include "text/jinja/number_text.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

// float of an int filter's argument, cut to an integer; `fallback` where it does not fit.
Value Truncate(double value, const Value& fallback) {
  if (!(std::fabs(value) < 9.2e18)) return fallback;
  return Value::Int(static_cast<int64_t>(value));
}

double RoundHalfEven(double value, int64_t precision) {
  // Python rounds the exact decimal expansion; printf does so as well.
  if (precision >= 0) {
    if (precision > 300) return value;
    return std::strtod(fmt::format("{:.{}f}", value, precision).c_str(), nullptr);
  }
  const double power = std::pow(10.0, static_cast<double>(-precision));
  return std::isinf(power) ? 0.0 : std::nearbyint(value / power) * power;
}

Result<Value> RoundInt(int64_t value, int64_t precision) {
  if (precision >= 0) return Value::Int(value);
  if (precision < -18) return Value::Int(0);
  int64_t power = 1;
  for (int64_t i = 0; i < -precision; ++i) power *= 10;
  const int64_t rest = value % power;
  int64_t rounded = value - rest;
  const int64_t twice = rest < 0 ? -rest : rest;
  const bool odd = (rounded / power) % 2 != 0;
  if (twice > power / 2 || (twice * 2 == power && odd)) {
    if (__builtin_add_overflow(rounded, rest < 0 ? -power : power, &rounded)) {
      return Unsupported("an integer beyond 64 bits");
    }
  }
  return Value::Int(rounded);
}

}  // namespace

Result<Value> FilterUnsupported(Runtime&, const Value&, BoundArguments&) {
  return Unsupported("this filter (pprint, urlize or wordwrap)");
}

Result<Value> FilterRandom(Runtime&, const Value&, BoundArguments&) {
  return Unsupported("the filter random (the text would differ from call to call)");
}

Result<Value> FilterDefault(Runtime&, const Value& self, BoundArguments& arguments) {
  const bool replace = self.is_undefined() || (arguments.Truthy(1, false) && !self.Truthy());
  if (!replace) return self;
  return arguments.Has(0) ? arguments[0] : Value::String("");
}

Result<Value> FilterAttr(Runtime&, const Value& self, BoundArguments& arguments) {
  if (self.is_undefined()) return Value::UndefinedBecause(self.undefined_reason());
  OCTAVO_ASSIGN_OR_RETURN(const std::string name, arguments.Text(0, ""));
  Value found;
  OCTAVO_ASSIGN_OR_RETURN(const AttributeKind kind, FindAttribute(self, name, &found));
  if (kind == AttributeKind::kFound) return found;
  return Value::UndefinedBecause(
      fmt::format("'{} object' has no attribute '{}'", self.type_name(), name));
}

Result<Value> FilterAbs(Runtime&, const Value& self, BoundArguments&) {
  if (self.is_float()) return Value::Float(std::fabs(self.as_double()));
  if (self.is_integral()) return self.as_int() < 0 ? Negate(self) : Positive(self);
  if (self.is_undefined()) return InvalidArgument(self.undefined_reason());
  return TypeError(fmt::format("bad operand type for abs(): '{}'", self.type_name()));
}

Result<Value> FilterInt(Runtime&, const Value& self, BoundArguments& arguments) {
  const Value fallback = arguments.Has(0) ? arguments[0] : Value::Int(0);
  OCTAVO_ASSIGN_OR_RETURN(const int64_t base, arguments.Int(1, 10));
  if (base < 2 || base > 36) return Unsupported("int with a base outside of 2 to 36");
  if (self.is_undefined()) return InvalidArgument(self.undefined_reason());
  if (self.is_integral()) return Value::Int(self.as_int());
  if (self.is_float()) {
    if (!std::isfinite(self.as_double())) return fallback;
    if (!(std::fabs(self.as_double()) < 9.2e18)) return Unsupported("an integer beyond 64 bits");
    return Truncate(self.as_double(), fallback);
  }
  if (!self.is_string()) return fallback;
  if (const auto value = ParsePythonInt(self.as_string(), static_cast<int>(base))) {
    return Value::Int(*value);
  }
  const auto value = ParsePythonFloat(self.as_string());
  if (!value.has_value() || !std::isfinite(*value)) return fallback;
  if (!(std::fabs(*value) < 9.2e18)) return Unsupported("an integer beyond 64 bits");
  return Truncate(*value, fallback);
}

Result<Value> FilterFloat(Runtime&, const Value& self, BoundArguments& arguments) {
  if (self.is_undefined()) return InvalidArgument(self.undefined_reason());
  if (self.is_number()) return Value::Float(self.as_double());
  if (self.is_string()) {
    if (const auto value = ParsePythonFloat(self.as_string())) return Value::Float(*value);
  }
  return arguments.Has(0) ? arguments[0] : Value::Float(0);
}

Result<Value> FilterRound(Runtime&, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t precision, arguments.Int(0, 0));
  OCTAVO_ASSIGN_OR_RETURN(const std::string method, arguments.Text(1, "common"));
  if (self.is_undefined()) return InvalidArgument(self.undefined_reason());
  if (!self.is_number()) {
    return TypeError(fmt::format("a {} cannot be rounded", self.type_name()));
  }
  if (method == "common") {
    if (self.is_integral()) return RoundInt(self.as_int(), precision);
    if (!std::isfinite(self.as_double())) return self;
    return Value::Float(RoundHalfEven(self.as_double(), precision));
  }
  if (method != "floor" && method != "ceil") {
    return InvalidArgument("the method of round must be common, ceil or floor");
  }
  if (precision < 0 || precision > 300) return Unsupported("round(method) with this precision");
  const double power = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.as_double() * power;
  return Value::Float((method == "floor" ? std::floor(scaled) : std::ceil(scaled)) / power);
}

Result<Value> FilterFilesizeformat(Runtime&, const Value& self, BoundArguments& arguments) {
  double bytes = 0;
  if (self.is_number()) {
    bytes = self.as_double();
  } else if (const auto value =
                 self.is_string() ? ParsePythonFloat(self.as_string()) : std::optional<double>()) {
    bytes = *value;
  } else {
    return TypeError(fmt::format("filesizeformat of a {}", self.type_name()));
  }
  const bool binary = arguments.Truthy(0, false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return Value::String("1 Byte");
  if (bytes < base) return Value::String(fmt::format("{} Bytes", static_cast<int64_t>(bytes)));
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  size_t i = 0;
  double unit = base;
  for (; i + 1 < kPrefixes.size() && bytes >= unit * base; ++i) unit *= base;
  const char prefix = binary && kPrefixes[i] == 'k' ? 'K' : kPrefixes[i];
  return Value::String(fmt::format("{:.1f} {}{}", bytes / unit, prefix, binary ? "iB" : "B"));
}

// transformers replaces Jinja's own: json.dumps with ensure_ascii off.
Result<Value> FilterTojson(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  JsonOptions options;
  options.ensure_ascii = arguments.Truthy(0, false);
  options.sort_keys = arguments.Truthy(3, false);
  if (arguments.Has(1) && !arguments[1].is_none()) {
    options.indented = true;
    options.item_separator = ",";
    if (arguments[1].is_string()) {
      options.indent = arguments[1].as_string();
    } else {
      OCTAVO_ASSIGN_OR_RETURN(const int64_t width, arguments.Int(1, 0));
      if (width > 1000) return InvalidArgument("tojson: indented by more than 1000 spaces");
      options.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (arguments.Has(2) && !arguments[2].is_none()) {
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> pair, Iterate(runtime, arguments[2]));
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return InvalidArgument("tojson: separators must be two strings");
    }
    options.item_separator = pair[0].as_string();
    options.key_separator = pair[1].as_string();
  }
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToJson(runtime, self, options));
  return Value::String(std::move(text));
}

}  // namespace octavo::jinja
