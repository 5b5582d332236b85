#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace octavo {

namespace {

// Builds a Value from nlohmann's SAX events; an event that returns false stops the parser.
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ValueBuilder(int max_depth) : max_depth_(max_depth) {}

  Value TakeValue() { return std::move(root_); }
  const std::string& error() const { return error_; }

  bool null() override { return Add(Value()); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(INT64_MAX)) return Add(static_cast<double>(value));
    return Add(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return Open(Value::MakeObject()); }
  bool start_array(std::size_t) override { return Open(Value::MakeArray()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second) {
      error_ = "the key " + JsonString(name) + " occurs twice in one object";
      return false;
    }
    open_.back().key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    std::string reason = exception.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." says more than users
    // need.
    if (size_t at = reason.find("] "); at != std::string::npos) reason = reason.substr(at + 2);
    error_ = fmt::format("byte {}: {}", position, reason);
    return false;
  }

 private:
  struct OpenValue {
    Value value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool Open(Value value) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      error_ = fmt::format("nested deeper than {} levels", max_depth_);
      return false;
    }
    open_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool Close() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    return Add(std::move(value));
  }

  bool Add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (OpenValue& parent = open_.back(); parent.value.is_array()) {
      parent.value.as_array().push_back(std::move(value));
    } else {
      parent.value.as_object().emplace_back(std::move(parent.key), std::move(value));
    }
    return true;
  }

  int max_depth_;
  std::vector<OpenValue> open_;
  Value root_;
  std::string error_;
};

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}
  std::string Take() { return std::move(out_); }

  void Write(const Value& value, int depth) {
    if (value.is_null()) {
      out_ += "null";
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else if (value.is_int()) {
      out_ += std::to_string(value.as_int());
    } else if (value.is_float()) {
      out_ += JsonFloat(value.as_double());
    } else if (value.is_string()) {
      out_ += JsonString(value.as_string(), style_.ensure_ascii);
    } else if (value.is_array()) {
      WriteItems('[', ']', value.as_array(), depth,
                 [&](const Value& item) { Write(item, depth + 1); });
    } else {
      std::vector<const Value::Member*> members;
      for (const Value::Member& member : value.as_object()) members.push_back(&member);
      if (style_.sort_keys) {
        std::sort(members.begin(), members.end(),
                  [](auto* a, auto* b) { return a->first < b->first; });
      }
      WriteItems('{', '}', members, depth, [&](const Value::Member* member) {
        out_ += JsonString(member->first, style_.ensure_ascii);
        out_ += ": ";
        Write(member->second, depth + 1);
      });
    }
  }

 private:
  static std::string JsonFloat(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return PythonFloat(value);
  }

  template <typename Items, typename WriteItem>
  void WriteItems(char open, char close, const Items& items, int depth,
                  const WriteItem& write_item) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += style_.indent < 0 ? ", " : ",";
      first = false;
      NewLine(depth + 1);
      write_item(item);
    }
    if (!first) NewLine(depth);
    out_ += close;
  }

  void NewLine(int depth) {
    if (style_.indent < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(depth) * static_cast<size_t>(style_.indent), ' ');
  }

  JsonStyle style_;
  std::string out_;
};

constexpr uint32_t kReplacement = 0xFFFD;

// The code point that starts at text[*at], which moves behind it. Parsed strings are valid UTF-8,
// generated text may not be: a byte that begins no valid sequence is taken alone, as U+FFFD.
uint32_t NextCodePoint(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[i]));
  };
  const uint32_t lead = byte(*at);
  if (lead < 0x80) return byte((*at)++);
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // of that length
  uint32_t code = lead & (0xFFU >> (length + 1));
  bool valid = lead >= 0xC2 && lead <= 0xF4 && *at + length <= text.size();
  for (size_t i = 1; valid && i < length; ++i) {
    valid = (byte(*at + i) & 0xC0U) == 0x80;
    code = code << 6 | (byte(*at + i) & 0x3FU);
  }
  valid = valid && code >= kLeast[length] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  *at += valid ? length : 1;
  return valid ? code : kReplacement;
}

}  // namespace

Result<Value> ParseJson(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.max_bytes) {
    return CorruptFile(fmt::format("{}: {} bytes of JSON, at most {} are read", what, text.size(),
                                   limits.max_bytes));
  }
  // nlohmann's lexer takes a zero byte for the end of the text.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    return CorruptFile(fmt::format("{}: not valid JSON: byte {}: a zero byte", what, zero + 1));
  ValueBuilder builder(limits.max_depth);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return CorruptFile(fmt::format("{}: not valid JSON: {}", what, builder.error()));
  }
  return builder.TakeValue();
}

std::string WriteJson(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.Write(value, 0);
  return writer.Take();
}

std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  // repr switches to an exponent below 1e-4 and from 1e16 on.
  const double magnitude = std::fabs(value);
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
  OCTAVO_CHECK(error == std::errc());
  std::string text(buffer, end);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string JsonString(std::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const uint32_t code = NextCodePoint(text, &i);
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code == '\b') {
      out += "\\b";
    } else if (code == '\f') {
      out += "\\f";
    } else if (code < 0x20) {
      out += fmt::format("\\u{:04x}", code);
    } else if (code > 0x7E && ensure_ascii) {
      if (code >= 0x10000) {
        const uint32_t offset = code - 0x10000;
        out +=
            fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
      } else {
        out += fmt::format("\\u{:04x}", code);
      }
    } else if (code == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out += text.substr(start, i - start);
    }
  }
  return out + "\"";
}

}  // namespace octavo
