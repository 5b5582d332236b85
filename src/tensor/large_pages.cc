#include "tensor/large_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace octavo {

namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr size_t kRegion = 4 * kPage;
constexpr size_t kAlignment = 64;

size_t RoundUp(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

class Region {
 public:
  explicit Region(size_t size) : size_(size) {
    // One page more, to begin where a large page can.
    mapped_ =
        mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<uintptr_t>(mapped_);
    bytes_ = static_cast<std::byte*>(mapped_) + (RoundUp(address, kPage) - address);
    madvise(bytes_, size, MADV_HUGEPAGE);  // where the system has none, small pages do
  }
  ~Region() { munmap(mapped_, size_ + kPage); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Null when there is no room.
  std::byte* Take(size_t size) {
    if (size > size_ - used_) return nullptr;
    used_ += size;
    return bytes_ + used_ - size;
  }

 private:
  void* mapped_;
  std::byte* bytes_;
  size_t size_;
  size_t used_ = 0;
};

// The region that is being filled. Those who have a part of it keep it, this does not.
std::mutex filling_mutex;
std::weak_ptr<Region> filling;

}  // namespace

std::shared_ptr<std::byte> AllocateInLargePages(size_t size) {
  size = RoundUp(std::max<size_t>(size, 1), kAlignment);
  const std::lock_guard lock(filling_mutex);
  std::shared_ptr<Region> region = filling.lock();
  std::byte* bytes = region == nullptr ? nullptr : region->Take(size);
  if (bytes == nullptr) {
    region = std::make_shared<Region>(std::max(kRegion, RoundUp(size, kPage)));
    bytes = region->Take(size);
    filling = region;
  }
  return {std::move(region), bytes};
}

}  // namespace octavo
