#include "runtime/text_stream.h"

#include <algorithm>
#include <utility>

namespace octavo {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop)
    : decoder_(tokenizer, /*skip_special_tokens=*/true), stop_(std::move(stop)) {
  std::erase(stop_, "");
}

std::string TextStream::Push(TokenId token) {
  return Release(decoder_.Push(token));
}

std::string TextStream::Flush() {
  std::string certain = Release(decoder_.Flush());
  if (!stopped_) certain += std::exchange(held_, "");
  return certain;
}

std::string TextStream::Release(std::string_view text) {
  if (stopped_) return "";
  held_ += text;
  size_t end = std::string::npos;
  for (const std::string& stop : stop_) end = std::min(end, held_.find(stop));
  stopped_ = end != std::string::npos;
  if (!stopped_) end = held_.size() - LongestPossibleStart();
  std::string certain = held_.substr(0, end);
  held_.erase(0, stopped_ ? held_.size() : end);
  return certain;
}

size_t TextStream::LongestPossibleStart() const {
  size_t longest = 0;
  for (const std::string& stop : stop_) {
    for (size_t length = std::min(stop.size(), held_.size()); length > longest; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) longest = length;
    }
  }
  return longest;
}

}  // namespace octavo
