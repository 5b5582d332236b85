#include "text/jinja/number_text.h"

#include <charconv>
#include <limits>
#include <string>

#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

// Trimmed, every decimal digit in ASCII; nothing where an underscore is not between digits.
std::optional<std::string> Normalize(std::string_view text) {
  std::string out;
  bool after_digit = false;
  bool after_underscore = false;
  text = Strip(text, Side::kBoth);
  for (size_t at = 0; at < text.size();) {
    const char32_t code = NextCodePoint(text, &at);
    const int digit = DecimalValue(code);
    if (code == '_') {
      if (!after_digit) return std::nullopt;
      after_underscore = true;
      after_digit = false;
      continue;
    }
    after_digit = digit >= 0 || (code < 0x80 && std::isalnum(static_cast<int>(code)) != 0);
    if (after_underscore && !after_digit) return std::nullopt;
    after_underscore = false;
    if (digit >= 0) {
      out += static_cast<char>('0' + digit);
    } else {
      AppendUtf8(code, out);
    }
  }
  if (after_underscore) return std::nullopt;
  return out;
}

}  // namespace

std::optional<int64_t> ParsePythonInt(std::string_view text, int base) {
  std::optional<std::string> digits = Normalize(text);
  if (!digits.has_value() || digits->empty()) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = rest[0] == '-';
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);
  if (rest.size() > 2 && rest[0] == '0') {
    const char letter = static_cast<char>(rest[1] | 0x20);
    if ((base == 16 && letter == 'x') || (base == 8 && letter == 'o') ||
        (base == 2 && letter == 'b')) {
      rest.remove_prefix(2);
    }
  }
  if (rest.empty() || rest[0] == '-') return std::nullopt;
  const std::string number = (negative ? "-" : "") + std::string(rest);
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), value, base);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return value;
}

std::optional<double> ParsePythonFloat(std::string_view text) {
  std::optional<std::string> normalized = Normalize(text);
  if (!normalized.has_value()) return std::nullopt;
  std::string number = Lower(*normalized);
  bool negative = false;
  if (!number.empty() && (number[0] == '-' || number[0] == '+')) {
    negative = number[0] == '-';
    number.erase(0, 1);
  }
  const auto sign = [&](double value) { return negative ? -value : value; };
  if (number == "inf" || number == "infinity") {
    return sign(std::numeric_limits<double>::infinity());
  }
  if (number == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (number.empty() || number[0] == '-' ||
      (number[0] != '.' && DecimalValue(static_cast<unsigned char>(number[0])) < 0)) {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (end != number.data() + number.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = std::strtod(number.c_str(), nullptr);
  if (error == std::errc::invalid_argument) return std::nullopt;
  return sign(value);
}

}  // namespace octavo::jinja
