// Text by code points, as Python's str sees it: case, white space, classes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/unicode.h"

namespace octavo::jinja {

// All take valid UTF-8; a stray byte is read as U+FFFD.
char32_t NextCodePoint(std::string_view text, size_t* at);
std::u32string ToCodePoints(std::string_view text);
std::string ToUtf8(std::u32string_view codes);

bool IsSpace(char32_t code);      // str.isspace and the \s of regular expressions
bool IsLineBreak(char32_t code);  // where str.splitlines splits
bool IsPrintable(char32_t code);
bool IsAlphabetic(char32_t code);
bool IsDecimal(char32_t code);
int DecimalValue(char32_t code);  // 0..9, or -1
bool IsUpper(char32_t code);
bool IsLower(char32_t code);
bool IsCased(char32_t code);
bool IsWordCharacter(char32_t code);  // the \w of regular expressions
// General category, utf8proc's number.
int Category(char32_t code);

std::string Upper(std::string_view text);
std::string Lower(std::string_view text);
std::string CaseFold(std::string_view text);
std::string Title(std::string_view text);
std::string Capitalize(std::string_view text);
std::string SwapCase(std::string_view text);

// `chars` null: white space.
enum class Side { kBoth, kLeft, kRight };
std::string_view Strip(std::string_view text, Side side, const std::string* chars = nullptr);

std::vector<std::string> SplitLines(std::string_view text, bool keep_ends);

}  // namespace octavo::jinja
