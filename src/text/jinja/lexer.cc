#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/unicode.h"

namespace octavo::jinja {

namespace {

constexpr size_t kMaxTokens = 2'000'000;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsDigitOf(char c, int base) {
  if (base == 16) return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  return c >= '0' && c < '0' + base;
}

// Every line end becomes \n, and one at the very end goes.
std::string NormalizeNewlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(NormalizeNewlines(source)) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) {
      const size_t tag = FindTag();
      if (tag == std::string::npos) {
        AddData(source_.substr(at_));
        Advance(source_.size());
        break;
      }
      OCTAVO_RETURN_IF_ERROR(Tag(tag));
      if (tokens_.size() > kMaxTokens) return Error("the template is too long");
    }
    Add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  Status Error(std::string_view message) const {
    return CorruptFile(fmt::format("line {}: {}", line_, message));
  }

  char Peek(size_t offset = 0) const {
    return at_ + offset < source_.size() ? source_[at_ + offset] : '\0';
  }
  bool StartsWith(std::string_view text) const {
    return source_.compare(at_, text.size(), text) == 0;
  }

  void Advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  // Moves behind any white space.
  void SkipSpace() {
    size_t at = at_;
    for (size_t next = at; at < source_.size(); at = next) {
      if (!IsSpace(NextCodePoint(source_, &next))) break;
    }
    Advance(at);
  }

  void Add(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = std::move(text);
    tokens_.push_back(std::move(token));
  }

  void AddData(std::string text) {
    if (!text.empty()) Add(TokenKind::kData, std::move(text));
  }

  size_t FindTag() const {
    for (size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1)) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return std::string::npos;
  }

  // The text before a tag that begins with `sign`: "-" strips all white space, otherwise blocks and
  // comments alone on their line lose what stands before them.
  std::string DataBefore(size_t tag, char sign, bool is_print) const {
    std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    if (sign == '-') return std::string(Strip(text, Side::kRight));
    if (sign == '+' || is_print) return std::string(text);
    const size_t newline = text.rfind('\n');
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    const bool at_line_start =
        newline != std::string_view::npos || at_ == 0 || source_[at_ - 1] == '\n';
    if (at_line_start && Strip(text.substr(line_start), Side::kLeft).empty()) {
      text = text.substr(0, line_start);
    }
    return std::string(text);
  }

  Status Tag(size_t tag) {
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const bool has_sign = sign == '-' || (sign == '+' && kind != '{');
    AddData(DataBefore(tag, has_sign ? sign : '\0', kind == '{'));
    Advance(tag + 2 + (has_sign ? 1 : 0));
    if (kind == '#') return Comment();
    if (kind == '%') {
      const size_t body = RawBody();
      if (body != 0) return Raw(body);
    }
    Add(kind == '{' ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, "");
    return Code(kind == '{');
  }

  Status Comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) return Error("the comment is not closed ('#}' is missing)");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    Advance(end + 2);
    SpaceAfterTag(sign);
    return OkStatus();
  }

  // What follows the end of a block or comment: "-" strips, "+" keeps, else one newline goes.
  void SpaceAfterTag(char sign) {
    if (sign == '-') {
      SkipSpace();
    } else if (sign != '+' && Peek() == '\n') {
      Advance(at_ + 1);
    }
  }

  // Where the text behind {% raw %} begins, or 0 if this is another tag. The cursor is behind "{%".
  size_t RawBody() const {
    size_t at = SpaceEnd(at_);
    if (source_.compare(at, 3, "raw") != 0) return 0;
    at = SpaceEnd(at + 3);
    const bool strip = at < source_.size() && source_[at] == '-';
    if (strip) ++at;
    if (source_.compare(at, 2, "%}") != 0) return 0;
    return strip ? SpaceEnd(at + 2) : at + 2;
  }

  size_t SpaceEnd(size_t at) const {
    for (size_t next = at; at < source_.size(); at = next) {
      if (!IsSpace(NextCodePoint(source_, &next))) break;
    }
    return at;
  }

  Status Raw(size_t body) {
    Advance(body);
    for (size_t tag = source_.find("{%", at_); tag != std::string::npos;
         tag = source_.find("{%", tag + 2)) {
      size_t at = tag + 2;
      const char sign = at < source_.size() ? source_[at] : '\0';
      const bool has_sign = sign == '-' || sign == '+';
      at = SpaceEnd(at + (has_sign ? 1 : 0));
      if (source_.compare(at, 6, "endraw") != 0) continue;
      at = SpaceEnd(at + 6);
      const char end_sign = at < source_.size() ? source_[at] : '\0';
      if (end_sign == '-' || end_sign == '+') ++at;
      if (source_.compare(at, 2, "%}") != 0) continue;
      AddData(DataBefore(tag, has_sign ? sign : '\0', false));
      Advance(at + 2);
      SpaceAfterTag(end_sign);
      return OkStatus();
    }
    return Error("the raw block is not closed ('{% endraw %}' is missing)");
  }

  // The tokens of a tag, up to its end. Inside brackets "}}" is no end.
  Status Code(bool is_print) {
    std::string open;
    while (true) {
      if (open.empty() && CodeEnd(is_print)) return OkStatus();
      if (at_ >= source_.size()) {
        // The parser says what it misses.
        return OkStatus();
      }
      size_t next = at_;
      const char32_t code = NextCodePoint(source_, &next);
      if (IsSpace(code)) {
        Advance(next);
        continue;
      }
      if (tokens_.size() > kMaxTokens) return Error("the template is too long");
      OCTAVO_RETURN_IF_ERROR(CodeToken(code, &open));
    }
  }

  bool CodeEnd(bool is_print) {
    const size_t sign = Peek() == '-' || (Peek() == '+' && !is_print) ? 1 : 0;
    if (source_.compare(at_ + std::min(sign, source_.size() - at_), 2, is_print ? "}}" : "%}") !=
        0) {
      return false;
    }
    const char sign_char = sign != 0 ? Peek() : '\0';
    Add(is_print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, "");
    Advance(at_ + sign + 2);
    if (is_print) {
      if (sign_char == '-') SkipSpace();
    } else {
      SpaceAfterTag(sign_char);
    }
    return true;
  }

  Status CodeToken(char32_t code, std::string* open) {
    if (code < 0x80 && IsDigit(static_cast<char>(code))) return Number();
    if (code == '_' || IsAlphabetic(code)) {
      Name();
      return OkStatus();
    }
    if (code == '\'' || code == '"') return StringLiteral(static_cast<char>(code));
    return Operator(open);
  }

  void Name() {
    size_t end = at_;
    for (size_t next = end; end < source_.size(); end = next) {
      const char32_t code = NextCodePoint(source_, &next);
      const int category = Category(code);
      const bool mark = category >= 6 && category <= 7;  // Mn, Mc: may continue a name
      if (!IsWordCharacter(code) && !mark) break;
    }
    Add(TokenKind::kName, source_.substr(at_, end - at_));
    Advance(end);
  }

  // Digits with single underscores between them, from `at` on; the end, or `at` if there are none.
  size_t DigitsEnd(size_t at, int base) const {
    size_t end = at;
    while (end < source_.size()) {
      if (IsDigitOf(source_[end], base)) {
        ++end;
      } else if (source_[end] == '_' && end > at && end + 1 < source_.size() &&
                 IsDigitOf(source_[end + 1], base)) {
        end += 2;
      } else {
        break;
      }
    }
    return end;
  }

  static std::string WithoutUnderscores(std::string text) {
    std::erase(text, '_');
    return text;
  }

  Status Number() {
    const size_t whole = DigitsEnd(at_, 10);
    size_t end = whole;
    if (at_ == 0 || source_[at_ - 1] != '.') {  // x.1.5 are two subscripts
      if (end < source_.size() && source_[end] == '.' && DigitsEnd(end + 1, 10) > end + 1) {
        end = DigitsEnd(end + 1, 10);
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        size_t digits = end + 1;
        if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
        if (DigitsEnd(digits, 10) > digits) end = DigitsEnd(digits, 10);
      }
    }
    return end > whole ? Float(end) : Integer(whole);
  }

  Status Float(size_t end) {
    const std::string text = WithoutUnderscores(source_.substr(at_, end - at_));
    Add(TokenKind::kFloat, text);
    double& value = tokens_.back().real;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) value = std::strtod(text.c_str(), nullptr);
    Advance(end);
    return OkStatus();
  }

  Status Integer(size_t end) {
    int base = 10;
    size_t start = at_;
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char letter = static_cast<char>(source_[at_ + 1] | 0x20);
      const int special = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
      if (special != 0 && DigitsEnd(at_ + 2, special) > at_ + 2) {
        base = special;
        start = at_ + 2;
        end = DigitsEnd(start, base);
      }
    }
    const std::string text = WithoutUnderscores(source_.substr(start, end - start));
    if (base == 10 && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != std::string::npos) {
      return Error("'" + text + "' is no number");
    }
    Add(TokenKind::kInteger, text);
    const auto [stop, error] =
        std::from_chars(text.data(), text.data() + text.size(), tokens_.back().integer, base);
    if (error != std::errc()) {
      return Unsupported(
          fmt::format("line {}: the integer {} is beyond 64 bits", line_, text.substr(0, 40)));
    }
    Advance(end);
    return OkStatus();
  }

  Status StringLiteral(char quote) {
    std::string value;
    size_t at = at_ + 1;
    while (true) {
      if (at >= source_.size()) return Error("a string is not closed");
      const char c = source_[at++];
      if (c == quote) break;
      if (c != '\\') {
        value += c;
        continue;
      }
      OCTAVO_RETURN_IF_ERROR(Escape(&at, &value));
    }
    Add(TokenKind::kString, std::move(value));
    Advance(at);
    return OkStatus();
  }

  // Python's escapes; unknown ones stay as they are.
  Status Escape(size_t* at, std::string* value) {
    if (*at >= source_.size()) return Error("a string is not closed");
    const char c = source_[(*at)++];
    static constexpr std::string_view kLetters = "abfnrtv\\'\"";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t place = kLetters.find(c); place != std::string_view::npos) {
      *value += kValues[place];
      return OkStatus();
    }
    if (c == '\n') return OkStatus();
    if (c == 'x') return CodeEscape(at, 2, 16, value);
    if (c == 'u') return CodeEscape(at, 4, 16, value);
    if (c == 'U') return CodeEscape(at, 8, 16, value);
    if (c == 'N') return Unsupported(fmt::format("line {}: the escape \\N in a string", line_));
    if (IsDigitOf(c, 8)) {
      --*at;
      size_t digits = 1;
      while (digits < 3 && *at + digits < source_.size() && IsDigitOf(source_[*at + digits], 8)) {
        ++digits;
      }
      return CodeEscape(at, digits, 8, value);
    }
    *value += '\\';
    *value += c;
    return OkStatus();
  }

  Status CodeEscape(size_t* at, size_t digits, int base, std::string* value) {
    uint32_t code = 0;
    const char* begin = source_.data() + *at;
    const char* end = source_.data() + std::min(*at + digits, source_.size());
    const auto [stop, error] = std::from_chars(begin, end, code, base);
    if (error != std::errc() || stop != begin + digits)
      return Error("a truncated escape in a string");
    if (code > 0x10FFFF) return Error("an escape beyond Unicode in a string");
    if (code >= 0xD800 && code < 0xE000) {
      return Unsupported(fmt::format("line {}: a surrogate escape in a string", line_));
    }
    AppendUtf8(code, *value);
    *at += digits;
    return OkStatus();
  }

  Status Operator(std::string* open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](std::string_view op) { return StartsWith(op); });
    if (found == std::end(kOperators)) {
      size_t next = at_;
      NextCodePoint(source_, &next);
      return Error(fmt::format("unexpected character '{}'", source_.substr(at_, next - at_)));
    }
    const std::string op(*found);
    if (op == "(" || op == "[" || op == "{")
      open->push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
    if (op == ")" || op == "]" || op == "}") {
      if (open->empty()) return Error("unexpected '" + op + "'");
      if (open->back() != op[0]) {
        return Error(fmt::format("unexpected '{}', expected '{}'", op, open->back()));
      }
      open->pop_back();
    }
    Add(TokenKind::kOperator, op);
    Advance(at_ + op.size());
    return OkStatus();
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  if (!IsValidUtf8(source)) return CorruptFile("the template is not valid UTF-8");
  return Lexer(source).Run();
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kPrintBegin:
      return "begin of print statement";
    case TokenKind::kPrintEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "end of template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace octavo::jinja
