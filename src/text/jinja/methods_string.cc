// Methods of strings (methods.inc), as Python's str has them.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/format.h"
#include "text/jinja/operators.h"
#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

constexpr int64_t kMaxWidth = 100'000;

Value Made(std::string_view text) {
  return Value::String(std::string(text));
}

template <typename Change>
Result<Value> Changed(Runtime& runtime, const Value& self, Change change) {
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(4 * self.as_string().size())));
  return Value::String(change(self.as_string()));
}

Result<Value> Stripped(const Value& self, const BoundArguments& arguments, Side side) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string chars, arguments.Text(0, ""));
  const bool has_chars = arguments.Has(0) && !arguments[0].is_none();
  return Made(Strip(self.as_string(), side, has_chars ? &chars : nullptr));
}

// The part of the text that [start:end] names, in bytes.
struct Window {
  size_t begin = 0;
  size_t end = 0;
  int64_t first = 0;   // code points before it
  bool empty = false;  // start lies behind the text or the end: nothing is found, not even ""
};

Result<Window> WindowOf(const std::string& text, const BoundArguments& arguments) {
  if (!arguments.Has(1) && !arguments.Has(2)) return Window{0, text.size(), 0, false};
  const auto size = CountCodePoints(text);
  OCTAVO_ASSIGN_OR_RETURN(int64_t start, arguments.Int(1, 0));
  OCTAVO_ASSIGN_OR_RETURN(int64_t stop, arguments.Int(2, size));
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop = std::max<int64_t>(stop + size, 0);
  stop = std::min(stop, size);
  if (start > stop) return Window{0, 0, 0, true};
  Window window;
  for (int64_t i = 0; i < start; ++i) NextCodePoint(text, &window.begin);
  window.end = window.begin;
  for (int64_t i = start; i < stop; ++i) NextCodePoint(text, &window.end);
  window.first = start;
  return window;
}

// find, rfind, index and rindex: the place in code points, or -1.
Result<int64_t> Find(Runtime& runtime, const Value& self, const BoundArguments& arguments,
                     bool last) {
  const std::string& text = self.as_string();
  OCTAVO_ASSIGN_OR_RETURN(const std::string part, arguments.Text(0, ""));
  if (!arguments[0].is_string()) return TypeError("must be str, not None");
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSearch(text, part));
  OCTAVO_ASSIGN_OR_RETURN(const Window window, WindowOf(text, arguments));
  if (window.empty) return int64_t{-1};
  const std::string_view inside =
      std::string_view(text).substr(window.begin, window.end - window.begin);
  const size_t place = last ? inside.rfind(part) : inside.find(part);
  if (place == std::string_view::npos) return int64_t{-1};
  return window.first + CountCodePoints(inside.substr(0, place));
}

Result<Value> FindOrFail(Runtime& runtime, const Value& self, const BoundArguments& arguments,
                         bool last) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t place, Find(runtime, self, arguments, last));
  if (place < 0) return InvalidArgument("substring not found");
  return Value::Int(place);
}

// startswith and endswith take one string or a tuple of them.
Result<Value> HasAffix(const Value& self, const BoundArguments& arguments, bool at_end) {
  const std::string& text = self.as_string();
  OCTAVO_ASSIGN_OR_RETURN(const Window window, WindowOf(text, arguments));
  const std::string_view inside =
      std::string_view(text).substr(window.begin, window.end - window.begin);
  std::vector<Value> affixes = {arguments[0]};
  if (arguments[0].is_list(ListKind::kTuple)) affixes = arguments[0].as_list().items;
  for (const Value& affix : affixes) {
    if (affix.is_undefined()) return InvalidArgument(affix.undefined_reason());
    if (!affix.is_string()) {
      return TypeError(fmt::format("the argument must be a string or a tuple of strings, not {}",
                                   affix.type_name()));
    }
    const bool has =
        at_end ? inside.ends_with(affix.as_string()) : inside.starts_with(affix.as_string());
    if (has && !window.empty) return Value::Bool(true);
  }
  return Value::Bool(false);
}

enum class Justify { kLeft, kRight, kCenter };

Result<Value> Justified(Runtime& runtime, const Value& self, const BoundArguments& arguments,
                        Justify justify) {
  const std::string& text = self.as_string();
  OCTAVO_ASSIGN_OR_RETURN(const int64_t width, arguments.Int(0, 0));
  OCTAVO_ASSIGN_OR_RETURN(const std::string fill, arguments.Text(1, " "));
  if (CountCodePoints(fill) != 1) {
    return TypeError("the fill character must be exactly one character long");
  }
  if (width > kMaxWidth) return InvalidArgument(fmt::format("wider than {}", kMaxWidth));
  const auto length = CountCodePoints(text);
  if (width <= length) return Made(text);
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(4 * width + static_cast<int64_t>(text.size())));
  const int64_t missing = width - length;
  // Python's center puts the odd one on the left only if the width is odd, too.
  const int64_t left = justify == Justify::kLeft    ? 0
                       : justify == Justify::kRight ? missing
                                                    : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return Value::String(std::move(out));
}

using Pieces = std::vector<Value>;

// At most `limit` cuts (negative: any number) at white space.
Pieces SplitAtSpace(std::string_view text, int64_t limit, bool from_right) {
  Pieces pieces;
  while (true) {
    text = Strip(text, from_right ? Side::kRight : Side::kLeft);
    if (text.empty()) break;
    if (limit-- == 0) {
      pieces.push_back(Made(Strip(text, from_right ? Side::kLeft : Side::kRight)));
      // What is left keeps the white space inside and at its far end.
      pieces.back() = Made(text);
      break;
    }
    size_t cut = from_right ? 0 : text.size();
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      if (!IsSpace(NextCodePoint(text, &at))) continue;
      cut = from_right ? at : start;
      if (!from_right) break;
    }
    pieces.push_back(Made(from_right ? text.substr(cut) : text.substr(0, cut)));
    text = from_right ? text.substr(0, cut) : text.substr(cut);
  }
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Pieces SplitAt(std::string_view text, std::string_view separator, int64_t limit, bool from_right) {
  Pieces pieces;
  while (limit-- != 0) {
    const size_t place = from_right ? text.rfind(separator) : text.find(separator);
    if (place == std::string_view::npos) break;
    const std::string_view before = text.substr(0, place);
    const std::string_view after = text.substr(place + separator.size());
    pieces.push_back(Made(from_right ? after : before));
    text = from_right ? before : after;
  }
  pieces.push_back(Made(text));
  if (from_right) std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Result<Value> Split(Runtime& runtime, const Value& self, const BoundArguments& arguments,
                    bool from_right) {
  const std::string& text = self.as_string();
  OCTAVO_ASSIGN_OR_RETURN(const std::string separator, arguments.Text(0, ""));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t limit, arguments.Int(1, -1));
  const bool at_space = !arguments.Has(0) || arguments[0].is_none();
  if (!at_space && separator.empty()) return InvalidArgument("empty separator");
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSearch(text, separator));
  // Before they are made: no piece is shorter than the separator and one more.
  size_t most = 1;
  for (size_t at = 0; !at_space && (at = text.find(separator, at)) != std::string::npos;
       at += separator.size()) {
    ++most;
  }
  if (at_space) {
    bool inside = false;
    for (size_t at = 0; at < text.size();) {
      const bool space = IsSpace(NextCodePoint(text, &at));
      if (!space && !inside) ++most;
      inside = !space;
    }
  }
  // From the right every cut at white space reads all that is left.
  if (at_space && from_right) {
    OCTAVO_RETURN_IF_ERROR(
        runtime.ChargeBytes(static_cast<int64_t>(most * (text.size() / 16 + 1))));
  }
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(3 * most));
  return Value::MakeList(at_space ? SplitAtSpace(text, limit, from_right)
                                  : SplitAt(text, separator, limit, from_right));
}

Result<Value> Partition(Runtime& runtime, const Value& self, const BoundArguments& arguments,
                        bool last) {
  const std::string& text = self.as_string();
  if (!arguments[0].is_string()) return TypeError("must be str");
  const std::string& separator = arguments[0].as_string();
  if (separator.empty()) return InvalidArgument("empty separator");
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSearch(text, separator));
  const size_t place = last ? text.rfind(separator) : text.find(separator);
  if (place == std::string::npos) {
    return last ? Value::MakeTuple({Made(""), Made(""), Made(text)})
                : Value::MakeTuple({Made(text), Made(""), Made("")});
  }
  return Value::MakeTuple(
      {Made(text.substr(0, place)), Made(separator), Made(text.substr(place + separator.size()))});
}

// Not empty, and all characters are of the class.
template <typename Is>
Result<Value> All(const Value& self, Is is) {
  const std::string& text = self.as_string();
  for (size_t at = 0; at < text.size();) {
    OCTAVO_ASSIGN_OR_RETURN(const bool fits, Result<bool>(is(NextCodePoint(text, &at))));
    if (!fits) return Value::Bool(false);
  }
  return Value::Bool(!text.empty());
}

// Superscripts, circled digits and Chinese numerals have numeric types we have no table of.
Result<bool> IsNumericBeyondDecimal(char32_t code) {
  const int category = Category(code);
  constexpr int kOtherNumber = 11, kLetterNumber = 10;
  const bool chinese = code >= 0x3400 && code < 0xFB00 && IsAlphabetic(code) && code < 0xA000;
  if (category == kOtherNumber || category == kLetterNumber || chinese) {
    return Unsupported("isdigit, isnumeric or isalnum of a character beyond decimal digits");
  }
  return false;
}

}  // namespace

#define JINJA_STRING_METHOD(name)                                                  \
  Result<Value> String##name([[maybe_unused]] Runtime& runtime, const Value& self, \
                             [[maybe_unused]] BoundArguments& arguments)

JINJA_STRING_METHOD(Capitalize) {
  return Changed(runtime, self, Capitalize);
}
JINJA_STRING_METHOD(Casefold) {
  return Changed(runtime, self, CaseFold);
}
JINJA_STRING_METHOD(Lower) {
  return Changed(runtime, self, Lower);
}
JINJA_STRING_METHOD(Swapcase) {
  return Changed(runtime, self, SwapCase);
}
JINJA_STRING_METHOD(Title) {
  return Changed(runtime, self, Title);
}
JINJA_STRING_METHOD(Upper) {
  return Changed(runtime, self, Upper);
}

JINJA_STRING_METHOD(Strip) {
  return Stripped(self, arguments, Side::kBoth);
}
JINJA_STRING_METHOD(Lstrip) {
  return Stripped(self, arguments, Side::kLeft);
}
JINJA_STRING_METHOD(Rstrip) {
  return Stripped(self, arguments, Side::kRight);
}

JINJA_STRING_METHOD(Startswith) {
  return HasAffix(self, arguments, false);
}
JINJA_STRING_METHOD(Endswith) {
  return HasAffix(self, arguments, true);
}

JINJA_STRING_METHOD(Center) {
  return Justified(runtime, self, arguments, Justify::kCenter);
}
JINJA_STRING_METHOD(Ljust) {
  return Justified(runtime, self, arguments, Justify::kLeft);
}
JINJA_STRING_METHOD(Rjust) {
  return Justified(runtime, self, arguments, Justify::kRight);
}

JINJA_STRING_METHOD(Split) {
  return Split(runtime, self, arguments, false);
}
JINJA_STRING_METHOD(Rsplit) {
  return Split(runtime, self, arguments, true);
}
JINJA_STRING_METHOD(Partition) {
  return Partition(runtime, self, arguments, false);
}
JINJA_STRING_METHOD(Rpartition) {
  return Partition(runtime, self, arguments, true);
}

JINJA_STRING_METHOD(Splitlines) {
  const std::vector<std::string> lines = SplitLines(self.as_string(), arguments.Truthy(0, false));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeItems(3 * lines.size()));
  std::vector<Value> items;
  for (const std::string& line : lines) items.push_back(Made(line));
  return Value::MakeList(std::move(items));
}

JINJA_STRING_METHOD(Find) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t place, Find(runtime, self, arguments, false));
  return Value::Int(place);
}
JINJA_STRING_METHOD(Rfind) {
  OCTAVO_ASSIGN_OR_RETURN(const int64_t place, Find(runtime, self, arguments, true));
  return Value::Int(place);
}
JINJA_STRING_METHOD(Index) {
  return FindOrFail(runtime, self, arguments, false);
}
JINJA_STRING_METHOD(Rindex) {
  return FindOrFail(runtime, self, arguments, true);
}

JINJA_STRING_METHOD(Count) {
  const std::string& text = self.as_string();
  if (!arguments[0].is_string()) return TypeError("must be str");
  const std::string& part = arguments[0].as_string();
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSearch(text, part));
  OCTAVO_ASSIGN_OR_RETURN(const Window window, WindowOf(text, arguments));
  if (window.empty) return Value::Int(0);
  const std::string_view inside =
      std::string_view(text).substr(window.begin, window.end - window.begin);
  if (part.empty()) return Value::Int(CountCodePoints(inside) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = inside.find(part, at)) != std::string_view::npos; at += part.size()) {
    ++count;
  }
  return Value::Int(count);
}

JINJA_STRING_METHOD(Replace) {
  const std::string& text = self.as_string();
  for (size_t i = 0; i < 2; ++i) {
    if (arguments[i].is_undefined()) return InvalidArgument(arguments[i].undefined_reason());
    if (!arguments[i].is_string()) {
      return TypeError(fmt::format("replace() argument {} must be str, not {}", i + 1,
                                   arguments[i].type_name()));
    }
  }
  const std::string& from = arguments[0].as_string();
  const std::string& to = arguments[1].as_string();
  OCTAVO_ASSIGN_OR_RETURN(int64_t limit, arguments.Int(2, -1));
  OCTAVO_RETURN_IF_ERROR(runtime.ChargeSearch(text, from));
  std::string out;
  size_t at = 0;
  while (limit-- != 0) {
    // An empty string is found before each character and at the end.
    const size_t place = from.empty() ? at : text.find(from, at);
    if (place == std::string::npos) break;
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(static_cast<int64_t>(place - at + to.size() + 1)));
    out.append(text, at, place - at);
    out += to;
    at = place + from.size();
    if (!from.empty()) continue;
    if (at == text.size()) break;
    NextCodePoint(text, &at);
    out.append(text, place, at - place);
  }
  out.append(text, at);
  return Value::String(std::move(out));
}

JINJA_STRING_METHOD(Removeprefix) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string prefix, arguments.Text(0, ""));
  std::string_view text = self.as_string();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return Made(text);
}

JINJA_STRING_METHOD(Removesuffix) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string suffix, arguments.Text(0, ""));
  std::string_view text = self.as_string();
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return Made(text);
}

JINJA_STRING_METHOD(Join) {
  OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime, arguments[0]));
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string()) {
      return TypeError(fmt::format("sequence item {}: expected str instance, {} found", i,
                                   items[i].type_name()));
    }
    OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(
        static_cast<int64_t>(items[i].as_string().size() + self.as_string().size())));
    if (i > 0) text += self.as_string();
    text += items[i].as_string();
  }
  return Value::String(std::move(text));
}

JINJA_STRING_METHOD(Zfill) {
  const std::string& text = self.as_string();
  OCTAVO_ASSIGN_OR_RETURN(const int64_t width, arguments.Int(0, 0));
  if (width > kMaxWidth) return InvalidArgument(fmt::format("wider than {}", kMaxWidth));
  const auto length = CountCodePoints(text);
  if (width <= length) return Made(text);
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return Value::String(text.substr(0, sign) +
                       std::string(static_cast<size_t>(width - length), '0') + text.substr(sign));
}

JINJA_STRING_METHOD(Expandtabs) {
  const std::string& text = self.as_string();
  OCTAVO_ASSIGN_OR_RETURN(const int64_t size, arguments.Int(0, 8));
  if (size > 1000) return InvalidArgument("expandtabs: more than 1000 columns");
  std::string out;
  int64_t column = 0;
  for (char c : text) {
    if (c == '\t') {
      const int64_t spaces = size <= 0 ? 0 : size - column % size;
      OCTAVO_RETURN_IF_ERROR(runtime.ChargeBytes(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
      continue;
    }
    out += c;
    if (c == '\n' || c == '\r') {
      column = 0;
    } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
      ++column;
    }
  }
  return Value::String(std::move(out));
}

JINJA_STRING_METHOD(Format) {
  return BraceFormat(runtime, self, arguments.rest, arguments.named);
}

JINJA_STRING_METHOD(FormatMap) {
  if (!arguments[0].is_dict()) return TypeError("format_map needs a dict");
  std::vector<std::pair<std::string, Value>> named;
  for (const auto& [key, value] : arguments[0].as_dict().entries()) {
    if (key.is_string()) named.emplace_back(key.as_string(), value);
  }
  return BraceFormat(runtime, self, {}, named);
}

JINJA_STRING_METHOD(Isspace) {
  return All(self, IsSpace);
}
JINJA_STRING_METHOD(Isalpha) {
  return All(self, IsAlphabetic);
}
JINJA_STRING_METHOD(Isdecimal) {
  return All(self, IsDecimal);
}
JINJA_STRING_METHOD(Isascii) {
  const std::string& text = self.as_string();
  return Value::Bool(std::all_of(text.begin(), text.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

JINJA_STRING_METHOD(Isdigit) {
  return All(self, [](char32_t code) -> Result<bool> {
    const int category = Category(code);
    if (IsDecimal(code)) return true;
    return category == 11 ? IsNumericBeyondDecimal(code) : Result<bool>(false);
  });
}

JINJA_STRING_METHOD(Isnumeric) {
  return All(self, [](char32_t code) -> Result<bool> {
    return IsDecimal(code) ? Result<bool>(true) : IsNumericBeyondDecimal(code);
  });
}

JINJA_STRING_METHOD(Isalnum) {
  return All(self, [](char32_t code) -> Result<bool> {
    if (IsAlphabetic(code) || IsDecimal(code)) return true;
    return IsNumericBeyondDecimal(code);
  });
}

namespace {

bool OnlyCase(const std::string& text, bool upper) {
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

JINJA_STRING_METHOD(Isupper) {
  return Value::Bool(OnlyCase(self.as_string(), true));
}
JINJA_STRING_METHOD(Islower) {
  return Value::Bool(OnlyCase(self.as_string(), false));
}

JINJA_STRING_METHOD(Istitle) {
  const std::string& text = self.as_string();
  bool any = false;
  bool inside_word = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextCodePoint(text, &at);
    const bool cased = IsCased(code);
    if (cased && IsLower(code) != inside_word) return Value::Bool(false);
    any |= cased;
    inside_word = cased;
  }
  return Value::Bool(any);
}

}  // namespace octavo::jinja
