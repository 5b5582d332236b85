#include "text/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

namespace octavo {
namespace {

unsigned char ByteAt(std::string_view text, size_t position) {
  return static_cast<unsigned char>(text[position]);
}

}  // namespace

char32_t DecodeUtf8(std::string_view text, size_t position) {
  const char32_t lead = ByteAt(text, position);
  const auto tail = [&](size_t i) { return char32_t{ByteAt(text, position + i)} & 0x3F; };
  switch (Utf8Length(text[position])) {
    case 1:
      return lead;
    case 2:
      return (lead & 0x1F) << 6 | tail(1);
    case 3:
      return (lead & 0x0F) << 12 | tail(1) << 6 | tail(2);
    default:
      return (lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
  }
}

void AppendUtf8(char32_t code_point, std::string& out) {
  const auto push = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | code_point >> 6);
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | code_point >> 12);
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | code_point >> 18);
    push(0x80 | (code_point >> 12 & 0x3F));
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

int64_t CountCodePoints(std::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += IsUtf8Continuation(byte) ? 0 : 1;
  return count;
}

Utf8Unit ClassifyUtf8(std::string_view text, size_t position) {
  using Kind = Utf8Unit::Kind;
  const unsigned char lead = ByteAt(text, position);
  if (lead < 0x80) return {Kind::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::kInvalid, 1};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte of four leads has a narrower range: no overlong form, no surrogate, no code
  // point above U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (position + i == text.size()) return {Kind::kCutOff, i};
    const unsigned char byte = ByteAt(text, position + i);
    const bool fits = i == 1 ? byte >= low && byte <= high : byte >= 0x80 && byte <= 0xBF;
    if (!fits) return {Kind::kInvalid, i};
  }
  return {Kind::kCharacter, length};
}

bool IsValidUtf8(std::string_view text) {
  return CheckUtf8(text).ok();
}

Status CheckUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Unit unit = ClassifyUtf8(text, i);
    if (unit.kind != Utf8Unit::Kind::kCharacter) {
      return InvalidArgument(
          fmt::format("the text is not UTF-8: byte 0x{:02X} at position {}", ByteAt(text, i), i));
    }
    i += unit.length;
  }
  return OkStatus();
}

std::string LossyUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Unit unit = ClassifyUtf8(bytes, i);
    const bool good = unit.kind == Utf8Unit::Kind::kCharacter;
    out += good ? bytes.substr(i, unit.length) : kReplacementCharacter;
    i += unit.length;
  }
  return out;
}

bool IsWhiteSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsNumeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool IsWordCharacter(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    // Other_Alphabetic among the symbols (circled and squared letters) and Join_Control.
    default:
      return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
             (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
             c == 0x200D;
  }
}

}  // namespace octavo
