// The bytes of a data file from front to back, unpacked where it is gzip.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace octavo {

class ByteSource {
 public:
  // gzip is known by its first bytes, whatever the file's name.
  static Result<ByteSource> Open(const std::filesystem::path& path);
  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  // Fills the front of `out` and returns how much of it; 0 only at the end. CorruptFile for gzip
  // that is damaged, cut off, followed by other bytes, or that unpacks to far more than any text
  // does.
  Result<size_t> Read(std::span<char> out);

 private:
  class Unpacker;

  ByteSource(std::ifstream file, std::unique_ptr<Unpacker> unpacker);
  Result<size_t> ReadFile(std::span<char> out);

  std::ifstream file_;
  std::unique_ptr<Unpacker> unpacker_;  // null: the bytes are taken as they are
};

// All that is left of it. CorruptFile where that is more than `max_bytes`.
Result<std::string> ReadAll(ByteSource& source, int64_t max_bytes);

}  // namespace octavo
