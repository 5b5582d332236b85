#include "io/descriptor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace octavo {

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Status SystemError(const std::filesystem::path& path, std::string_view what) {
  const int error = errno;
  std::string message = fmt::format("{}: {}: {}", path.string(), what, std::strerror(error));
  if (error == ENOENT) return NotFound(std::move(message));
  if (error == ENOSPC || error == EDQUOT) message += "; free space there or choose another folder";
  return IoError(std::move(message));
}

Status SystemError(const std::filesystem::path& path, std::string_view what,
                   const std::error_code& error) {
  errno = error.value();
  return SystemError(path, what);
}

}  // namespace octavo
