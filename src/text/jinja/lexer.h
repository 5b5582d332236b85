// Template text to tokens, with the white space rules that transformers sets (trim_blocks,
// lstrip_blocks).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace octavo::jinja {

enum class TokenKind {
  kData,        // text outside of tags
  kPrintBegin,  // {{
  kPrintEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,    // text: its value
  kInteger,   // number
  kFloat,     // real
  kOperator,  // text: the symbol
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;
  int64_t integer = 0;
  double real = 0;
};

// The last token is kEnd. CorruptFile with line for what is no token.
Result<std::vector<Token>> Tokenize(std::string_view source);

// "end of print statement", "'x'" and so on, for messages.
std::string Describe(const Token& token);

}  // namespace octavo::jinja
