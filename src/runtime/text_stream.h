// Tokens to text as they come: never half a character, never part of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace octavo {

class TextStream {
 public:
  // The tokenizer outlives the stream. The text ends before any of `stop`.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop);

  // The text that became certain by this token; may be empty. After stopped() it stays so.
  std::string Push(TokenId token);
  // What was held back, when no more tokens come; the last call.
  std::string Flush();
  // Whether a stop string was completed.
  bool stopped() const { return stopped_; }

 private:
  std::string Release(std::string_view text);
  // Length of the longest end of held_ with which some stop string begins.
  size_t LongestPossibleStart() const;

  StreamDecoder decoder_;
  std::vector<std::string> stop_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace octavo
