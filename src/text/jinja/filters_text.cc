// Filters of filters.inc over text.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

constexpr int64_t kMaxWidth = 100'000;

// The value as text (Jinja's soft_str), through `change`; what was Markup stays Markup.
template <typename Change>
Result<Value> Mapped(Runtime& runtime, const Value& self, Change change) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(4 * text.size())));
  return Value::String(change(text), self.is_markup());
}

Status NotUnderAutoescape(const Runtime& runtime, std::string_view name) {
  if (!runtime.autoescape) return OkStatus();
  return Unsupported(fmt::format("the filter {} inside of autoescape", name));
}

// Words begin behind these in the filter title, not behind an apostrophe.
bool StartsWord(char32_t code) {
  return code == '-' || code == '(' || code == '{' || code == '[' || code == '<' || IsSpace(code);
}

std::string PercentEncode(std::string_view text, bool for_query) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool safe = (std::isalnum(byte) != 0 && byte < 0x80) || c == '_' || c == '.' ||
                      c == '-' || c == '~' || (c == '/' && !for_query);
    if (safe) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

}  // namespace

Result<Value> FilterString(Runtime& runtime, const Value& self, BoundArguments&) {
  if (self.is_string()) return self;
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  return Value::String(std::move(text));
}

Result<Value> FilterUpper(Runtime& runtime, const Value& self, BoundArguments&) {
  return Mapped(runtime, self, Upper);
}

Result<Value> FilterLower(Runtime& runtime, const Value& self, BoundArguments&) {
  return Mapped(runtime, self, Lower);
}

Result<Value> FilterCapitalize(Runtime& runtime, const Value& self, BoundArguments&) {
  return Mapped(runtime, self, Capitalize);
}

Result<Value> FilterTitle(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(8 * text.size())));
  const std::u32string codes = ToCodePoints(text);
  std::string out;
  for (size_t begin = 0; begin < codes.size();) {
    size_t end = begin + 1;
    const bool separator = StartsWord(codes[begin]);
    while (end < codes.size() && StartsWord(codes[end]) == separator) ++end;
    const std::string first = ToUtf8(codes.substr(begin, 1));
    out += Upper(first);
    out += Lower(ToUtf8(codes.substr(begin + 1, end - begin - 1)));
    begin = end;
  }
  return Value::String(std::move(out));
}

Result<Value> FilterTrim(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string chars, arguments.Text(0, ""));
  const bool has_chars = arguments.Has(0) && !arguments[0].is_none();
  return Mapped(runtime, self, [&](const std::string& text) {
    return std::string(Strip(text, Side::kBoth, has_chars ? &chars : nullptr));
  });
}

Result<Value> FilterReplace(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_RETURN_IF_ERROR(NotUnderAutoescape(runtime, "replace"));
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  OCTAVO_ASSIGN_OR_RETURN(std::string from, ToText(runtime, arguments[0]));
  OCTAVO_ASSIGN_OR_RETURN(std::string to, ToText(runtime, arguments[1]));
  Value replace;
  OCTAVO_ASSIGN_OR_RETURN(replace,
                          GetAttribute(runtime, Value::String(std::move(text)), "replace"));
  Arguments values;
  values.positional = {Value::String(std::move(from)), Value::String(std::move(to))};
  if (arguments.Has(2) && !arguments[2].is_none()) values.positional.push_back(arguments[2]);
  return replace.As<CallableObject>()->Call(runtime, std::move(values));
}

Result<Value> FilterCenter(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  OCTAVO_ASSIGN_OR_RETURN(const Value center,
                          GetAttribute(runtime, Value::String(std::move(text)), "center"));
  Arguments values;
  values.positional = {arguments.Has(0) ? arguments[0] : Value::Int(80)};
  return center.As<CallableObject>()->Call(runtime, std::move(values));
}

Result<Value> FilterIndent(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  std::string indent;
  if (arguments.Has(0) && arguments[0].is_string()) {
    indent = arguments[0].as_string();
  } else {
    OCTAVO_ASSIGN_OR_RETURN(const int64_t width, arguments.Int(0, 4));
    if (width > kMaxWidth) return InvalidArgument("indent: too wide");
    indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = arguments.Truthy(1, false);
  const bool blank = arguments.Truthy(2, false);
  // A newline behind the text keeps the last line from being lost; it is not in the result.
  std::string out;
  const std::vector<std::string> lines = SplitLines(text + "\n", false);
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(lines.size()));
  OCTAVO_RETURN_IF_ERROR(
      runtime.ChargeBytes(static_cast<int64_t>(text.size() + lines.size() * (indent.size() + 1))));
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    const bool indented = i == 0 ? first : blank || !lines[i].empty();
    if (indented) out += indent;
    out += lines[i];
  }
  return Value::String(std::move(out), self.is_markup());
}

Result<Value> FilterEscape(Runtime& runtime, const Value& self, BoundArguments&) {
  if (self.is_markup()) return self;
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(6 * text.size())));
  return Value::String(EscapeHtml(text), true);
}

Result<Value> FilterForceescape(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(6 * text.size())));
  return Value::String(EscapeHtml(text), true);
}

Result<Value> FilterSafe(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  return Value::String(std::move(text), true);
}

Result<Value> FilterFormat(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  if (!arguments.rest.empty() && !arguments.named.empty()) {
    return TypeError("format takes positional or keyword arguments, not both");
  }
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  const Value format = Value::String(std::move(text), self.is_markup());
  if (arguments.named.empty()) {
    return PercentFormat(runtime, format, Value::MakeTuple(std::move(arguments.rest)));
  }
  Dict dict;
  for (auto& [name, value] : arguments.named) dict.Set(Value::String(name), std::move(value));
  return PercentFormat(runtime, format, Value::MakeDict(std::move(dict)));
}

Result<Value> FilterUrlencode(Runtime& runtime, const Value& self, BoundArguments&) {
  std::vector<std::pair<Value, Value>> pairs;
  if (self.is_dict()) {
    pairs = self.as_dict().entries();
  } else if (self.is_list()) {
    for (const Value& item : self.as_list().items) {
      OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> pair, Iterate(runtime, item));
      if (pair.size() != 2) return InvalidArgument("urlencode: an item is not a pair");
      pairs.emplace_back(pair[0], pair[1]);
    }
  } else {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(3 * text.size())));
    return Value::String(PercentEncode(text, false));
  }
  std::string out;
  for (const auto& [key, value] : pairs) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string name, ToText(runtime, key));
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, value));
    OCTAVO_RETURN_IF_ERROR(
        runtime.ChargeBytes(static_cast<int64_t>(3 * (name.size() + text.size()))));
    if (!out.empty()) out += '&';
    out += PercentEncode(name, true) + "=" + PercentEncode(text, true);
  }
  return Value::String(std::move(out));
}

Result<Value> FilterTruncate(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t length, arguments.Int(0, 255));
  OCTAVO_ASSIGN_OR_RETURN(const std::string end, arguments.Text(2, "..."));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t leeway, arguments.Int(3, 5));
  const auto end_length = CountCodePoints(end);
  if (length < end_length) return InvalidArgument("truncate: the length is below that of its end");
  if (leeway < 0 || length > INT64_MAX - leeway) return InvalidArgument("truncate: a bad leeway");
  const std::u32string codes = ToCodePoints(text);
  if (static_cast<int64_t>(codes.size()) <= length + leeway) return self;
  std::string cut =
      ToUtf8(std::u32string_view(codes).substr(0, static_cast<size_t>(length - end_length)));
  if (!arguments.Truthy(1, false)) cut = cut.substr(0, std::min(cut.rfind(' '), cut.size()));
  return Value::String(cut + end);
}

Result<Value> FilterWordcount(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const bool word = IsWordCharacter(NextCodePoint(text, &at));
    if (word && !inside) ++words;
    inside = word;
  }
  return Value::Int(words);
}

Result<Value> FilterStriptags(Runtime& runtime, const Value& self, BoundArguments&) {
  OCTAVO_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  if (text.find('&') != std::string::npos || text.find("<!--") != std::string::npos) {
    return Unsupported("striptags of a text with '&' or comments");
  }
  std::string bare;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('<', at), text.size());
    const size_t close = open == text.size() ? std::string::npos : text.find('>', open);
    if (close == std::string::npos) {
      bare += text.substr(at);
      break;
    }
    bare += text.substr(at, open - at);
    at = close + 1;
  }
  std::string out;
  for (size_t at = 0; at < bare.size();) {
    const size_t start = at;
    if (IsSpace(NextCodePoint(bare, &at))) {
      if (!out.empty() && out.back() != ' ') out += ' ';
    } else {
      out += bare.substr(start, at - start);
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return Value::String(std::move(out));
}

Result<Value> FilterXmlattr(Runtime& runtime, const Value& self, BoundArguments& arguments) {
  OCTAVO_RETURN_IF_ERROR(NotUnderAutoescape(runtime, "xmlattr"));
  if (!self.is_dict()) return TypeError("xmlattr needs a dict");
  std::string out;
  for (const auto& [key, value] : self.as_dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    OCTAVO_ASSIGN_OR_RETURN(const std::string name, ToText(runtime, key));
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      return InvalidArgument("xmlattr: a bad attribute name");
    }
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, value));
    if (!out.empty()) out += ' ';
    out += EscapeHtml(name) + "=\"" + (value.is_markup() ? text : EscapeHtml(text)) + "\"";
  }
  if (arguments.Truthy(0, true) && !out.empty()) out = " " + out;
  return Value::String(std::move(out));
}

}  // namespace octavo::jinja
