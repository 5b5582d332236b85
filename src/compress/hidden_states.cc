#include "compress/hidden_states.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"

namespace octavo {

namespace fs = std::filesystem;

namespace {

constexpr char kPrefix[] = "hidden.";
constexpr char kNext[] = "hidden.next";

}  // namespace

HiddenStates::HiddenStates(fs::path folder, int64_t tokens, int64_t width, bool in_memory)
    : folder_(std::move(folder)), tokens_(tokens), width_(width), in_memory_(in_memory) {
  if (in_memory_) rows_.resize(static_cast<size_t>(tokens * width));
}

int64_t HiddenStates::file_bytes() const {
  return tokens_ * width_ * static_cast<int64_t>(sizeof(float));
}

fs::path HiddenStates::FileOf(int64_t block) const {
  return folder_ / fmt::format("{}{}", kPrefix, block);
}

Status HiddenStates::Load(int64_t block) {
  const fs::path path = FileOf(block);
  current_.emplace(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (current_->get() < 0) return SystemError(path, "cannot open");
  const off_t size = lseek(current_->get(), 0, SEEK_END);
  if (size != file_bytes()) {
    return CorruptFile(fmt::format("{}: {} bytes, expected {} ({} tokens x {})", path.string(),
                                   static_cast<int64_t>(size), file_bytes(), tokens_, width_));
  }
  block_ = block;
  if (!in_memory_) return OkStatus();
  in_memory_ = false;  // read from the file
  const Status read = Read(0, rows_);
  in_memory_ = true;
  return read;
}

Status HiddenStates::Read(int64_t first, std::span<float> rows) const {
  const auto begin = static_cast<size_t>(first * width_);
  OCTAVO_CHECK(begin + rows.size() <= static_cast<size_t>(tokens_ * width_)) << first;
  if (in_memory_) {
    std::copy_n(rows_.begin() + static_cast<std::ptrdiff_t>(begin), rows.size(), rows.begin());
    return OkStatus();
  }
  std::span<std::byte> bytes = std::as_writable_bytes(rows);
  auto offset = static_cast<off_t>(begin * sizeof(float));
  while (!bytes.empty()) {
    const ssize_t got = pread(current_->get(), bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(FileOf(block_), "cannot read");
    if (got == 0) return CorruptFile(FileOf(block_).string() + ": ends too early");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += got;
  }
  return OkStatus();
}

Status HiddenStates::Append(std::span<const float> rows) {
  const fs::path path = folder_ / kNext;
  if (!next_) {
    next_.emplace(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (next_->get() < 0) return SystemError(path, "cannot create");
    appended_ = 0;
  }
  const int64_t count = std::ssize(rows) / width_;
  OCTAVO_CHECK(appended_ + count <= tokens_) << appended_ << " + " << count;
  std::span<const std::byte> bytes = std::as_bytes(rows);
  while (!bytes.empty()) {
    const ssize_t put = write(next_->get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(path, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  if (in_memory_) {
    std::copy(rows.begin(), rows.end(),
              rows_.begin() + static_cast<std::ptrdiff_t>(appended_ * width_));
  }
  appended_ += count;
  return OkStatus();
}

Status HiddenStates::Advance(int64_t block) {
  if (tokens_ == 0) return OkStatus();
  OCTAVO_CHECK(next_ && appended_ == tokens_) << appended_ << " of " << tokens_;
  const fs::path path = FileOf(block);
  if (fsync(next_->get()) != 0) return SystemError(folder_ / kNext, "cannot sync");
  if (rename((folder_ / kNext).c_str(), path.c_str()) != 0)
    return SystemError(path, "cannot rename into place");
  const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) return SystemError(folder_, "cannot sync");
  current_ = std::move(next_);
  next_.reset();
  block_ = block;
  return OkStatus();
}

Status HiddenStates::RemoveOthers() const {
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix) || at->path() == FileOf(block_)) continue;
    fs::remove(at->path(), error);
    if (error) return SystemError(at->path(), "cannot remove", error);
  }
  return error ? SystemError(folder_, "cannot list", error) : OkStatus();
}

}  // namespace octavo
