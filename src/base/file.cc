#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace octavo {

namespace {

// Closes a file descriptor when it goes out of scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status SystemError(const std::filesystem::path& path, std::string_view what) {
  const int error = errno;
  std::string message = fmt::format("{}: {}: {}", path.string(), what, std::strerror(error));
  return error == ENOENT ? NotFound(std::move(message)) : IoError(std::move(message));
}

Status WriteAndSync(const std::filesystem::path& path, std::string_view content) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return SystemError(path, "cannot create");
  while (!content.empty()) {
    const ssize_t put = write(file.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(path, "cannot write");
    content.remove_prefix(static_cast<size_t>(put));
  }
  if (fsync(file.get()) != 0) return SystemError(path, "cannot sync");
  return OkStatus();
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path, int64_t max_bytes) {
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return SystemError(path, "cannot open");
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return SystemError(path, "cannot read its size");
  if (!S_ISREG(info.st_mode)) return IoError(path.string() + ": not a regular file");
  if (info.st_size > max_bytes) {
    return CorruptFile(
        fmt::format("{}: {} bytes, at most {} are read", path.string(), info.st_size, max_bytes));
  }
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = read(file.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, "cannot read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  content.resize(done);
  return content;
}

Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  const std::filesystem::path unfinished = path.string() + ".unfinished";
  Status status = WriteAndSync(unfinished, content);
  if (status.ok() && rename(unfinished.c_str(), path.c_str()) != 0)
    status = SystemError(path, "cannot rename into place");
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

}  // namespace octavo
