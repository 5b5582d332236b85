#include "text/jinja/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "base/json.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

constexpr int64_t kMaxWidth = 100'000;  // of one field

// What stands between % or { and the type letter.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =, or 0: as the type has it
  char sign = '-';
  bool alternate = false;
  bool comma = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

Status TooWide() {
  return InvalidArgument(fmt::format("a format is wider than {} characters", kMaxWidth));
}

// A number at format[*at], or -1 where there is none.
Result<int64_t> ReadNumber(std::string_view format, size_t* at) {
  int64_t number = -1;
  while (*at < format.size() && format[*at] >= '0' && format[*at] <= '9') {
    number = std::max<int64_t>(number, 0) * 10 + (format[(*at)++] - '0');
    if (number > kMaxWidth) return TooWide();
  }
  return number;
}

std::string Pad(const std::string& text, const Spec& spec, char default_align) {
  const auto length = CountCodePoints(text);
  if (length >= spec.width) return text;
  const int64_t missing = spec.width - length;
  const char align = spec.align == 0 ? default_align : spec.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string padded;
  const size_t sign = align == '=' && !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  padded += text.substr(0, sign);
  for (int64_t i = 0; i < left; ++i) padded += spec.fill;
  padded += text.substr(sign);
  for (int64_t i = left; i < missing; ++i) padded += spec.fill;
  return padded;
}

std::string WithSign(std::string digits, bool negative, char sign) {
  if (negative) return "-" + digits;
  return sign == '-' ? digits : std::string(1, sign) + digits;
}

std::string GroupThousands(const std::string& digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string IntDigits(int64_t value, char type, bool alternate) {
  const uint64_t magnitude =
      value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  switch (type) {
    case 'x':
      return (alternate ? "0x" : "") + fmt::format("{:x}", magnitude);
    case 'X':
      return (alternate ? "0X" : "") + fmt::format("{:X}", magnitude);
    case 'o':
      return (alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    case 'b':
      return (alternate ? "0b" : "") + fmt::format("{:b}", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

// Types e E f F g G of C and Python agree; '%' is f of the hundredfold.
std::string FloatDigits(double value, const Spec& spec) {
  const double magnitude = std::fabs(value) * (spec.type == '%' ? 100 : 1);
  if (std::isnan(value)) return "nan";
  if (std::isinf(magnitude)) return "inf";
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  const char type = spec.type == '%' ? 'f' : spec.type;
  std::string form = "%";
  if (spec.alternate) form += '#';
  form += ".*";
  form += type;
  const int size = std::snprintf(nullptr, 0, form.c_str(), precision, magnitude);
  std::string digits(static_cast<size_t>(std::max(size, 0)) + 1, '\0');
  std::snprintf(digits.data(), digits.size(), form.c_str(), precision, magnitude);
  digits.pop_back();
  return spec.type == '%' ? digits + "%" : digits;
}

Result<std::string> FormatInt(int64_t value, const Spec& spec) {
  std::string digits = IntDigits(value, spec.type, spec.alternate);
  if (spec.comma) digits = GroupThousands(digits);
  return Pad(WithSign(std::move(digits), value < 0, spec.sign), spec, '>');
}

Result<std::string> FormatFloat(double value, const Spec& spec) {
  std::string digits = FloatDigits(value, spec);
  if (spec.comma) digits = GroupThousands(digits);
  return Pad(WithSign(std::move(digits), std::signbit(value) && !std::isnan(value), spec.sign),
             spec, '>');
}

std::string CutToPrecision(const std::string& text, int64_t precision) {
  if (precision < 0) return text;
  std::u32string codes = ToCodePoints(text);
  if (static_cast<int64_t>(codes.size()) <= precision) return text;
  return ToUtf8(std::u32string_view(codes).substr(0, static_cast<size_t>(precision)));
}

bool IsFloatType(char type) {
  return type != 0 && std::string_view("eEfFgG%").find(type) != std::string_view::npos;
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& arguments)
      : runtime_(runtime),
        format_(format.as_string()),
        markup_(format.is_markup()),
        arguments_(arguments) {}

  Result<Value> Run() {
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c != '%') {
        out_ += c;
        continue;
      }
      OCTAVO_RETURN_IF_ERROR(Field());
    }
    const bool is_tuple = arguments_.is_list(ListKind::kTuple);
    const size_t given = is_tuple ? arguments_.as_list().items.size() : 1;
    if (next_ < given && !arguments_.is_dict() && !(arguments_.is_list() && !is_tuple)) {
      return TypeError("not all arguments converted during string formatting");
    }
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(static_cast<int64_t>(out_.size())));
    return Value::String(std::move(out_), markup_);
  }

 private:
  Result<Value> NextArgument() {
    const bool is_tuple = arguments_.is_list(ListKind::kTuple);
    const size_t given = is_tuple ? arguments_.as_list().items.size() : 1;
    if (next_ >= given) return TypeError("not enough arguments for format string");
    const size_t place = next_++;
    return is_tuple ? arguments_.as_list().items[place] : arguments_;
  }

  Status Field() {
    Spec spec;
    std::optional<Value> argument;
    if (at_ < format_.size() && format_[at_] == '(') {
      const size_t end = format_.find(')', at_);
      if (end == std::string::npos) return InvalidArgument("incomplete format key");
      if (!arguments_.is_dict()) return TypeError("format requires a mapping");
      const std::string key = format_.substr(at_ + 1, end - at_ - 1);
      const Value* found = arguments_.as_dict().Find(key);
      if (found == nullptr) return InvalidArgument("the format key '" + key + "' is missing");
      argument = *found;
      at_ = end + 1;
    }
    for (; at_ < format_.size(); ++at_) {
      const char flag = format_[at_];
      if (flag == '-') {
        spec.align = '<';
      } else if (flag == '0') {
        spec.fill = "0";
      } else if (flag == '+' || flag == ' ') {
        spec.sign = flag == '+' || spec.sign == '+' ? '+' : ' ';
      } else if (flag == '#') {
        spec.alternate = true;
      } else {
        break;
      }
    }
    OCTAVO_ASSIGN_OR_RETURN(spec.width, ReadNumber(format_, &at_));
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      OCTAVO_ASSIGN_OR_RETURN(spec.precision, ReadNumber(format_, &at_));
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    while (at_ < format_.size() &&
           std::string_view("hlL").find(format_[at_]) != std::string::npos) {
      ++at_;
    }
    if (at_ >= format_.size()) return InvalidArgument("incomplete format");
    spec.type = format_[at_++];
    if (spec.type == '%') {
      out_ += '%';
      return OkStatus();
    }
    if (!argument.has_value()) {
      OCTAVO_ASSIGN_OR_RETURN(argument, NextArgument());
    }
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, Convert(*argument, spec));
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(static_cast<int64_t>(text.size())));
    out_ += text;
    return OkStatus();
  }

  Result<std::string> Convert(const Value& value, Spec& spec) {
    if (spec.type == 's' || spec.type == 'r') {
      OCTAVO_ASSIGN_OR_RETURN(std::string text,
                              spec.type == 's' ? ToText(runtime_, value) : ToRepr(runtime_, value));
      if (markup_ && !value.is_markup()) text = EscapeHtml(text);
      spec.fill = " ";
      return Pad(CutToPrecision(text, spec.precision), spec, '>');
    }
    if (value.is_undefined()) return InvalidArgument(value.undefined_reason());
    // Zeros go between sign and digits.
    if (spec.fill == "0" && spec.align == 0) spec.align = '=';
    if (spec.align == '<') spec.fill = " ";
    const bool integer_type = std::string_view("diuxXo").find(spec.type) != std::string::npos;
    if (integer_type && spec.precision >= 0) return Unsupported("a precision for an integer");
    if (integer_type && value.is_integral()) return FormatInt(value.as_int(), spec);
    if (integer_type && value.is_float() &&
        std::string_view("diu").find(spec.type) != std::string::npos) {
      if (!(std::fabs(value.as_double()) < 9e18)) return Unsupported("an integer beyond 64 bits");
      return FormatInt(static_cast<int64_t>(value.as_double()), spec);
    }
    if (IsFloatType(spec.type) && value.is_number()) return FormatFloat(value.as_double(), spec);
    if (integer_type || IsFloatType(spec.type)) {
      return TypeError(
          fmt::format("%{} format: a number is required, not {}", spec.type, value.type_name()));
    }
    return Unsupported(fmt::format("the format character '{}'", spec.type));
  }

  Runtime& runtime_;
  const std::string& format_;
  bool markup_;
  const Value& arguments_;
  size_t at_ = 0;
  size_t next_ = 0;
  std::string out_;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const std::vector<Value>& positional,
                 const std::vector<std::pair<std::string, Value>>& named)
      : runtime_(runtime), positional_(positional), named_(named) {}

  // A format inside a format's spec may not nest further.
  Result<std::string> Run(std::string_view format, int depth) {
    if (depth > 2) return InvalidArgument("a format is nested too deep");
    std::string out;
    for (size_t at = 0; at < format.size();) {
      const char c = format[at++];
      if ((c == '{' || c == '}') && at < format.size() && format[at] == c) {
        out += c;
        ++at;
      } else if (c == '}') {
        return InvalidArgument("single '}' encountered in format string");
      } else if (c != '{') {
        out += c;
      } else {
        OCTAVO_ASSIGN_OR_RETURN(const std::string_view field, TakeField(format, &at));
        OCTAVO_ASSIGN_OR_RETURN(const std::string text, Field(field, depth));
        OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(static_cast<int64_t>(text.size())));
        out += text;
      }
    }
    return out;
  }

 private:
  // The text up to the brace that closes the field.
  static Result<std::string_view> TakeField(std::string_view format, size_t* at) {
    const size_t start = *at;
    for (int open = 1; *at < format.size(); ++*at) {
      if (format[*at] == '{') ++open;
      if (format[*at] == '}' && --open == 0) return format.substr(start, (*at)++ - start);
    }
    return InvalidArgument("expected '}' before end of string");
  }

  Result<std::string> Field(std::string_view field, int depth) {
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    OCTAVO_ASSIGN_OR_RETURN(Value value, Lookup(field.substr(0, name_end)));
    size_t at = name_end;
    if (at < field.size() && field[at] == '!') {
      if (at + 1 >= field.size()) return InvalidArgument("unmatched '{' in format spec");
      const char conversion = field[at + 1];
      if (conversion == 'a') return Unsupported("the conversion !a");
      if (conversion != 'r' && conversion != 's') {
        return InvalidArgument("unknown conversion in a format");
      }
      OCTAVO_ASSIGN_OR_RETURN(
          std::string text, conversion == 'r' ? ToRepr(runtime_, value) : ToText(runtime_, value));
      value = Value::String(std::move(text));
      at += 2;
      if (at < field.size() && field[at] != ':') {
        return InvalidArgument("expected ':' after conversion specifier");
      }
    }
    std::string spec;
    if (at < field.size()) {
      OCTAVO_ASSIGN_OR_RETURN(spec, Run(field.substr(at + 1), depth + 1));
    }
    return Convert(value, spec);
  }

  Result<Value> Lookup(std::string_view name) {
    size_t at = std::min(name.find_first_of(".["), name.size());
    OCTAVO_ASSIGN_OR_RETURN(Value value, Argument(name.substr(0, at)));
    while (at < name.size()) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        OCTAVO_ASSIGN_OR_RETURN(value,
                                GetAttribute(runtime_, value, name.substr(at + 1, end - at - 1)));
        at = end;
      } else if (name[at] == '[') {
        const size_t end = name.find(']', at);
        if (end == std::string_view::npos) return InvalidArgument("missing ']' in format string");
        OCTAVO_ASSIGN_OR_RETURN(
            value, GetItem(runtime_, value, KeyFromText(name.substr(at + 1, end - at - 1))));
        at = end + 1;
      } else {
        return InvalidArgument("only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  static Value KeyFromText(std::string_view text) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && number >= 0) {
      return Value::Int(number);
    }
    return Value::String(std::string(text));
  }

  Result<Value> Argument(std::string_view name) {
    const Value key = KeyFromText(name);
    if (name.empty() || key.is_int()) {
      const bool automatic = name.empty();
      if (numbering_.has_value() && *numbering_ != automatic) {
        return InvalidArgument("a format numbers its fields both by hand and automatically");
      }
      numbering_ = automatic;
      const auto place = automatic ? next_++ : static_cast<size_t>(key.as_int());
      if (place >= positional_.size()) {
        return InvalidArgument(fmt::format("the format has no argument {}", place));
      }
      return positional_[place];
    }
    for (const auto& [given, value] : named_) {
      if (given == name) return value;
    }
    return InvalidArgument(fmt::format("the format has no argument '{}'", name));
  }

  static Result<Spec> ParseSpec(std::string_view text) {
    Spec spec;
    size_t at = 0;
    const auto is_align = [&](size_t place) {
      return place < text.size() && std::string_view("<>^=").find(text[place]) != std::string::npos;
    };
    size_t after_first = 0;
    if (!text.empty()) NextCodePoint(text, &after_first);
    if (!text.empty() && is_align(after_first)) {
      spec.fill = text.substr(0, after_first);
      spec.align = text[after_first];
      at = after_first + 1;
    } else if (is_align(0)) {
      spec.align = text[0];
      at = 1;
    }
    if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) {
      spec.sign = text[at++];
    }
    if (at < text.size() && text[at] == '#') {
      spec.alternate = true;
      ++at;
    }
    if (at < text.size() && text[at] == '0') {
      if (spec.align == 0) {
        spec.fill = "0";
        spec.align = '=';
      }
      ++at;
    }
    OCTAVO_ASSIGN_OR_RETURN(spec.width, ReadNumber(text, &at));
    if (at < text.size() && text[at] == ',') {
      spec.comma = true;
      ++at;
    }
    if (at < text.size() && text[at] == '.') {
      ++at;
      OCTAVO_ASSIGN_OR_RETURN(spec.precision, ReadNumber(text, &at));
      if (spec.precision < 0) return InvalidArgument("format specifier missing precision");
    }
    if (at < text.size()) spec.type = text[at++];
    if (at != text.size()) return InvalidArgument("invalid format specifier");
    return spec;
  }

  Result<std::string> Convert(const Value& value, const std::string& spec_text) {
    if (spec_text.empty()) return ToText(runtime_, value);
    OCTAVO_ASSIGN_OR_RETURN(Spec spec, ParseSpec(spec_text));
    if (spec.comma && spec.fill == "0") return Unsupported("zeros and ',' in one format");
    if (value.is_string()) {
      if ((spec.type != 0 && spec.type != 's') || spec.comma || spec.align == '=' ||
          spec.sign != '-') {
        return InvalidArgument("the format '" + spec_text + "' does not fit a string");
      }
      return Pad(CutToPrecision(value.as_string(), spec.precision), spec, '<');
    }
    if (value.is_bool()) return Unsupported("a format of a bool");
    if (value.is_number() && IsFloatType(spec.type)) return FormatFloat(value.as_double(), spec);
    if (value.is_float() && spec.type == 0 && spec.precision < 0 && !spec.comma) {
      std::string digits = PythonFloat(std::fabs(value.as_double()));
      return Pad(WithSign(std::move(digits), std::signbit(value.as_double()), spec.sign), spec,
                 '>');
    }
    if (value.is_int() && spec.precision < 0 &&
        (spec.type == 0 || std::string_view("dxXob").find(spec.type) != std::string::npos)) {
      if (spec.comma && spec.type != 0 && spec.type != 'd') {
        return InvalidArgument("cannot specify ',' with this type");
      }
      return FormatInt(value.as_int(), spec);
    }
    return Unsupported(
        fmt::format("the format '{}' of a value of type {}", spec_text, value.type_name()));
  }

  Runtime& runtime_;
  const std::vector<Value>& positional_;
  const std::vector<std::pair<std::string, Value>>& named_;
  std::optional<bool> numbering_;  // automatic or not, once a field said so
  size_t next_ = 0;
};

}  // namespace

Result<Value> PercentFormat(Runtime& runtime, const Value& format, const Value& arguments) {
  return PercentFormatter(runtime, format, arguments).Run();
}

Result<Value> BraceFormat(Runtime& runtime, const Value& format,
                          const std::vector<Value>& positional,
                          const std::vector<std::pair<std::string, Value>>& named) {
  if (format.is_markup()) return Unsupported("format of a text marked safe");
  BraceFormatter formatter(runtime, positional, named);
  OCTAVO_ASSIGN_OR_RETURN(std::string text, formatter.Run(format.as_string(), 1));
  return Value::String(std::move(text));
}

}  // namespace octavo::jinja
