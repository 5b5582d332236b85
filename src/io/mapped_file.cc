#include "io/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "io/descriptor.h"

namespace octavo {

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::filesystem::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path, "cannot open");
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return SystemError(path, "cannot read its size");
  if (!S_ISREG(info.st_mode)) return IoError(path.string() + ": not a regular file");
  const auto size = static_cast<size_t>(info.st_size);
  std::span<const std::byte> bytes;
  if (size > 0) {  // mmap refuses empty files
    void* start = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (start == MAP_FAILED) return SystemError(path, "cannot map into memory");
    bytes = {static_cast<const std::byte*>(start), size};
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, bytes));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::Forget(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + part.size()) / page * page;
  if (end <= first) return;
  // Whole pages inside the part only: a shared page may hold a neighbour that is still needed.
  madvise(const_cast<std::byte*>(part.data()) + (first - begin), end - first, MADV_DONTNEED);
}

}  // namespace octavo
