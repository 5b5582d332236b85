// Descriptor: a file descriptor that closes itself, and errno as a Status.
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace octavo {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // Negative when the file could not be opened.
  int get() const { return fd_; }

 private:
  int fd_;
};

// "path: what: No such file or directory" from errno: NotFound for ENOENT, else IoError. A full
// disk is said in plain words.
Status SystemError(const std::filesystem::path& path, std::string_view what);
// The same from what std::filesystem reports.
Status SystemError(const std::filesystem::path& path, std::string_view what,
                   const std::error_code& error);

}  // namespace octavo
