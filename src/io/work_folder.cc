#include "io/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace octavo {

namespace fs = std::filesystem;

namespace {

// Whether the folder that was locked is still the one under that name: another process may have
// finished and removed it in between.
bool SameFolder(const Descriptor& opened, const fs::path& path) {
  struct stat held {};
  struct stat named {};
  return fstat(opened.get(), &held) == 0 && stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

Status CheckOutput(const fs::path& out, bool force) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(out, error))) return OkStatus();
  if (!force) {
    return AlreadyExists(out.string() +
                         ": exists; choose another output or replace it with --force");
  }
  if (!fs::is_directory(out, error)) {
    return AlreadyExists(out.string() + ": is not a folder and is not replaced, even with --force");
  }
  if (!fs::is_empty(out, error) && !fs::exists(out / "config.json", error)) {
    return AlreadyExists(out.string() +
                         ": holds no config.json, so it is no checkpoint and is not replaced, even "
                         "with --force");
  }
  return OkStatus();
}

Result<std::shared_ptr<const WorkFolder>> WorkFolder::Open(const fs::path& out) {
  std::error_code error;
  fs::path absolute = fs::absolute(out, error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // "out/" is "out"
  if (out.empty() || !absolute.has_filename()) {
    return InvalidArgument("\"" + out.string() + "\": expected the name of an output folder");
  }
  const fs::path path = absolute.string() + ".unfinished";
  while (true) {
    fs::create_directories(path, error);
    if (error) return SystemError(path, "cannot create", error);
    Descriptor lock(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.get() < 0 && errno == ENOENT) continue;
    if (lock.get() < 0) return SystemError(path, "cannot open");
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return SystemError(path, "cannot lock");
      return AlreadyExists(path.string() +
                           ": another run is at work on this output; wait for it, or choose "
                           "another output");
    }
    if (!SameFolder(lock, path)) continue;
    return std::shared_ptr<const WorkFolder>(
        new WorkFolder(std::move(absolute), path, std::move(lock)));
  }
}

Status WorkFolder::Clear() const {
  std::error_code error;
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    fs::remove_all(at->path(), error);
    if (error) return SystemError(at->path(), "cannot remove", error);
  }
  return error ? SystemError(path_, "cannot list", error) : OkStatus();
}

void WorkFolder::Remove() const {
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace octavo
