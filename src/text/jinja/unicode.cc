#include "text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

namespace octavo::jinja {

namespace {

enum class Case { kUpper, kLower, kTitle };

struct SpecialCase {
  char32_t code;
  std::string_view upper, lower, title;
};

constexpr SpecialCase kSpecialCases[] = {
#define X(code, upper, lower, title) {code, upper, lower, title},
#include "text/jinja/case_table.inc"
#undef X
};

constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

void AppendCase(char32_t code, Case to, std::string* out) {
  const auto* special =
      std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), code,
                       [](const SpecialCase& row, char32_t c) { return row.code < c; });
  if (special != std::end(kSpecialCases) && special->code == code) {
    *out += to == Case::kUpper   ? special->upper
            : to == Case::kLower ? special->lower
                                 : special->title;
    return;
  }
  const auto c = static_cast<utf8proc_int32_t>(code);
  const utf8proc_int32_t mapped = to == Case::kUpper   ? utf8proc_toupper(c)
                                  : to == Case::kLower ? utf8proc_tolower(c)
                                                       : utf8proc_totitle(c);
  AppendUtf8(static_cast<char32_t>(mapped), *out);
}

bool IsCaseIgnorable(char32_t code) {
  switch (Category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2019;
  }
}

// A capital sigma at the end of a word: a cased letter before it and none behind it.
bool IsFinalSigma(const std::u32string& codes, size_t at) {
  size_t before = at;
  while (before > 0 && IsCaseIgnorable(codes[before - 1])) --before;
  if (before == 0 || !IsCased(codes[before - 1])) return false;
  size_t after = at + 1;
  while (after < codes.size() && IsCaseIgnorable(codes[after])) ++after;
  return after == codes.size() || !IsCased(codes[after]);
}

void AppendLower(const std::u32string& codes, size_t at, std::string* out) {
  if (codes[at] == kCapitalSigma && IsFinalSigma(codes, at)) {
    AppendUtf8(kFinalSigma, *out);
  } else {
    AppendCase(codes[at], Case::kLower, out);
  }
}

}  // namespace

char32_t NextCodePoint(std::string_view text, size_t* at) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t lead = byte(*at);
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (length == 1 || *at + length > text.size()) {
    ++*at;
    return lead < 0x80 ? lead : U'\uFFFD';
  }
  char32_t code = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(*at + i) & 0x3FU);
  *at += length;
  return code;
}

std::u32string ToCodePoints(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) codes += NextCodePoint(text, &at);
  return codes;
}

std::string ToUtf8(std::u32string_view codes) {
  std::string text;
  text.reserve(codes.size());
  for (char32_t code : codes) AppendUtf8(code, text);
  return text;
}

bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool IsLineBreak(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

int Category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool IsPrintable(char32_t code) {
  switch (Category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}

bool IsAlphabetic(char32_t code) {
  const int category = Category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimal(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_ND;
}

int DecimalValue(char32_t code) {
  if (!IsDecimal(code)) return -1;
  // Digits come in runs of ten from zero on; some runs touch.
  char32_t first = code;
  while (first > 0 && IsDecimal(first - 1)) --first;
  return static_cast<int>((code - first) % 10);
}

bool IsUpper(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_LU;
}

bool IsLower(char32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}

bool IsCased(char32_t code) {
  return IsUpper(code) || IsLower(code) || Category(code) == UTF8PROC_CATEGORY_LT;
}

bool IsWordCharacter(char32_t code) {
  const int category = Category(code);
  return code == '_' || IsAlphabetic(code) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

std::string Upper(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) AppendCase(NextCodePoint(text, &at), Case::kUpper, &out);
  return out;
}

std::string Lower(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) AppendLower(codes, i, &out);
  return out;
}

std::string CaseFold(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto code = static_cast<utf8proc_int32_t>(NextCodePoint(text, &at));
    const auto count = utf8proc_decompose_char(code, folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < std::min<utf8proc_ssize_t>(count, 8); ++i) {
      AppendUtf8(static_cast<char32_t>(folded[i]), out);
    }
  }
  return out;
}

std::string Title(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::string out;
  bool inside_word = false;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (inside_word) {
      AppendLower(codes, i, &out);
    } else {
      AppendCase(codes[i], Case::kTitle, &out);
    }
    inside_word = IsCased(codes[i]);
  }
  return out;
}

std::string Capitalize(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (i == 0) {
      AppendCase(codes[i], Case::kTitle, &out);
    } else {
      AppendLower(codes, i, &out);
    }
  }
  return out;
}

std::string SwapCase(std::string_view text) {
  const std::u32string codes = ToCodePoints(text);
  std::string out;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (IsUpper(codes[i])) {
      AppendLower(codes, i, &out);
    } else {
      AppendCase(codes[i], IsLower(codes[i]) ? Case::kUpper : Case::kLower, &out);
    }
  }
  return out;
}

std::string_view Strip(std::string_view text, Side side, const std::string* chars) {
  const std::u32string set = chars == nullptr ? std::u32string() : ToCodePoints(*chars);
  const auto strips = [&](char32_t code) {
    return chars == nullptr ? IsSpace(code) : set.find(code) != std::u32string::npos;
  };
  size_t begin = 0;
  size_t end = text.size();
  while (side != Side::kRight && begin < end) {
    size_t next = begin;
    if (!strips(NextCodePoint(text, &next))) break;
    begin = next;
  }
  while (side != Side::kLeft && begin < end) {
    size_t start = end - 1;
    while (start > begin && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) --start;
    size_t at = start;
    if (!strips(NextCodePoint(text, &at))) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t code = NextCodePoint(text, &at);
    if (!IsLineBreak(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(start, (keep_ends ? at : end) - start));
    start = at;
  }
  if (start < text.size()) lines.emplace_back(text.substr(start));
  return lines;
}

}  // namespace octavo::jinja
