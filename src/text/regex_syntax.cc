// Oniguruma's Ruby syntax to PCRE2's: where the two mean different things by the same characters.
#include <fmt/format.h>

#include <vector>

#include "text/regex.h"

namespace octavo {
namespace {

// Members of a set. PCRE2's \s and \w differ from Unicode's (and its \h is not a hexadecimal
// digit).
constexpr std::string_view kSpace =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x00-\x08\x0e-\x1f\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff})"
    R"(\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view kWord = R"(\p{L}\p{M}\p{N}\p{Pc}\x{24b6}-\x{24e9})";
constexpr std::string_view kHex = "0-9A-Fa-f";

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> Run() {
    while (at_ < in_.size()) OCTAVO_RETURN_IF_ERROR(Step());
    return std::move(out_);
  }

 private:
  Status Step() {
    switch (in_[at_]) {
      case '\\':
        BeginAtom();
        return Escape();
      case '[':
        BeginAtom();
        return Set();
      case '(':
        return OpenGroup();
      case ')':
        if (!groups_.empty()) {
          atom_ = groups_.back();
          groups_.pop_back();
        }
        Copy(1);
        return OkStatus();
      case '{':
        Interval();
        return OkStatus();
      case '*':
      case '+':
      case '?':
        Copy(1);
        return OkStatus();
      default:
        BeginAtom();
        Copy(1);
        return OkStatus();
    }
  }

  void BeginAtom() { atom_ = out_.size(); }
  void Copy(size_t count) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }
  void Replace(size_t count, std::string_view by) {
    out_ += by;
    at_ += count;
  }
  char Peek(size_t ahead) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  Status Refuse(std::string_view what) const {
    return Unsupported(fmt::format("{} at byte {} of the pattern \"{}\"", what, at_, in_));
  }

  Status Escape() {
    switch (Peek(1)) {
      case 's':
        Replace(2, fmt::format("[{}]", kSpace));
        break;
      case 'S':
        Replace(2, fmt::format("[^{}]", kSpace));
        break;
      case 'w':
        Replace(2, fmt::format("[{}]", kWord));
        break;
      case 'W':
        Replace(2, fmt::format("[^{}]", kWord));
        break;
      case 'h':
        Replace(2, fmt::format("[{}]", kHex));
        break;
      case 'H':
        Replace(2, fmt::format("[^{}]", kHex));
        break;
      case 'b':
        Replace(2, fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord));
        break;
      case 'B':
        Replace(2, fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord));
        break;
      default:
        OtherEscape();
    }
    return OkStatus();
  }

  // \p{...}, \uHHHH and what means the same to both.
  void OtherEscape() {
    const char kind = Peek(1);
    if (kind == 'u' && at_ + 6 <= in_.size()) {
      out_ += fmt::format("\\x{{{}}}", in_.substr(at_ + 2, 4));
      at_ += 6;
    } else if ((kind == 'p' || kind == 'P' || kind == 'x' || kind == 'k' || kind == 'g') &&
               (Peek(2) == '{' || Peek(2) == '<')) {
      const size_t close = in_.find(Peek(2) == '{' ? '}' : '>', at_);
      Copy(close == in_.npos ? in_.size() - at_ : close + 1 - at_);
    } else {
      Copy(2);
    }
  }

  Status Set() {
    Copy(1);
    if (Peek(0) == '^') Copy(1);
    if (Peek(0) == ']') Copy(1);
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case ']':
          Copy(1);
          return OkStatus();
        case '[':
          if (Peek(1) != ':') return Refuse("a set inside a set");
          {
            const size_t close = in_.find(":]", at_ + 2);
            if (close == in_.npos) return Refuse("a set inside a set");
            Copy(close + 2 - at_);
          }
          break;
        case '&':
          if (Peek(1) == '&') return Refuse("an intersection of sets");
          Copy(1);
          break;
        case '\\':
          OCTAVO_RETURN_IF_ERROR(EscapeInSet());
          break;
        default:
          Copy(1);
      }
    }
    return OkStatus();  // PCRE2 reports the missing bracket
  }

  Status EscapeInSet() {
    switch (Peek(1)) {
      case 's':
        Replace(2, kSpace);
        break;
      case 'S':
        Replace(2, kNotSpace);
        break;
      case 'w':
        Replace(2, kWord);
        break;
      case 'h':
        Replace(2, kHex);
        break;
      case 'W':
      case 'H':
        return Refuse("a negated class inside a set");
      default:
        OtherEscape();
    }
    return OkStatus();
  }

  // Ruby's (?m) lets the dot match newlines, which PCRE2 calls (?s).
  Status OpenGroup() {
    groups_.push_back(out_.size());
    Copy(1);
    if (Peek(0) != '?') return OkStatus();
    if (Peek(1) == '#') {
      const size_t close = in_.find(')', at_);
      Copy(close == in_.npos ? in_.size() - at_ : close - at_);
      return OkStatus();
    }
    Copy(1);
    while (Peek(0) == 'i' || Peek(0) == 'x' || Peek(0) == 'm' || Peek(0) == '-') {
      if (Peek(0) == 'm') {
        Replace(1, "s");
      } else {
        Copy(1);
      }
    }
    if (Peek(0) == '<') Copy(1);  // lookbehind; of a named group the name follows as plain text
    if (Peek(0) == '=' || Peek(0) == '!' || Peek(0) == '>' || Peek(0) == ':') Copy(1);
    return OkStatus();
  }

  // {n,m}, {n,}, {,m}, {n}. Behind an interval "+" is a quantifier of its own in Ruby, and so is
  // "?" behind {n}; PCRE2 would read them as possessive and lazy.
  void Interval() {
    size_t end = at_ + 1;
    const auto digits = [&] {
      const size_t begin = end;
      while (end < in_.size() && IsDigit(in_[end])) ++end;
      return in_.substr(begin, end - begin);
    };
    const std::string_view low = digits();
    const bool comma = end < in_.size() && in_[end] == ',';
    if (comma) ++end;
    const std::string_view high = comma ? digits() : std::string_view();
    if (end >= in_.size() || in_[end] != '}' || (low.empty() && high.empty())) {
      BeginAtom();
      out_ += "\\";  // a literal brace
      Copy(1);
      return;
    }
    out_ += fmt::format("{{{}{}{}}}", low.empty() ? "0" : low, comma ? "," : "", high);
    at_ = end + 1;
    if (Peek(0) == '+' || (Peek(0) == '?' && !comma)) {
      out_.insert(atom_, "(?:");
      out_ += ')';
      Copy(1);
    }
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where in out_ the last atom begins
  std::vector<size_t> groups_;  // where each open group begins
};

}  // namespace

Result<std::string> OnigurumaToPcre2(std::string_view pattern) {
  return Translator(pattern).Run();
}

}  // namespace octavo
