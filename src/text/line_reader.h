// The lines of a data file, one after another, within a limit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "text/byte_source.h"

namespace octavo {

class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = size_t{16} << 20;

  explicit LineReader(ByteSource source) : source_(std::move(source)) {}

  // Appends the next line to `line`, without its "\n"; false behind the last one. A byte order mark
  // in front of the file is dropped. CorruptFile, naming the line, where `line` would become longer
  // than kMaxLineBytes.
  Result<bool> Append(std::string& line);
  // Of the line that was read last, from 1.
  int64_t number() const { return number_; }

 private:
  ByteSource source_;
  std::string chunk_;
  size_t at_ = 0;   // what of chunk_ is taken
  size_t end_ = 0;  // what of chunk_ is filled
  int64_t number_ = 0;
};

}  // namespace octavo
