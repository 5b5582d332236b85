#include "text/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace octavo {

namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

Result<bool> LineReader::Append(std::string& line) {
  const size_t begin = line.size();
  bool any = false;
  ++number_;
  while (true) {
    if (at_ == end_) {
      chunk_.resize(kChunkBytes);
      OCTAVO_ASSIGN_OR_RETURN(end_, source_.Read(chunk_));
      at_ = 0;
      if (end_ == 0) break;
    }
    any = true;
    const std::string_view rest = std::string_view(chunk_).substr(at_, end_ - at_);
    const size_t length = std::min(rest.find('\n'), rest.size());
    if (line.size() + length > kMaxLineBytes) {
      return CorruptFile(fmt::format("line {} is longer than {} bytes: is this a text file?",
                                     number_, kMaxLineBytes));
    }
    line.append(rest, 0, length);
    at_ += length;
    if (length == rest.size()) continue;
    ++at_;
    break;
  }
  if (number_ == 1 && std::string_view(line).substr(begin).starts_with(kByteOrderMark)) {
    line.erase(begin, kByteOrderMark.size());
  }
  return any;
}

}  // namespace octavo
