// WorkFolder: "<out>.unfinished", where an output is made before it exists, for one process at a
// time.
#pragma once

#include <filesystem>
#include <memory>

#include "base/status.h"
#include "io/descriptor.h"

namespace octavo {

// What lies in it outlives a killed process: an interrupted run goes on there. Held by one process
// (flock): the lock goes with the object, or with the process.
class WorkFolder {
 public:
  // Opens or creates the folder of `out` and locks it. AlreadyExists when another process holds it.
  static Result<std::shared_ptr<const WorkFolder>> Open(const std::filesystem::path& out);

  // The output's path, absolute and without a slash at its end.
  const std::filesystem::path& out() const { return out_; }
  const std::filesystem::path& path() const { return path_; }

  // Removes everything in it but keeps the lock.
  Status Clear() const;
  // Removes it.
  void Remove() const;

 private:
  WorkFolder(std::filesystem::path out, std::filesystem::path path, Descriptor lock)
      : out_(std::move(out)), path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path out_;
  std::filesystem::path path_;
  Descriptor lock_;
};

// AlreadyExists for an output that exists, unless `force` is set. Even then only a checkpoint or an
// empty folder is replaced: a mistyped path must not cost a home directory.
Status CheckOutput(const std::filesystem::path& out, bool force);

}  // namespace octavo
