// Memory in large pages, for what is read from end to end again and again.
#pragma once

#include <cstddef>
#include <memory>

namespace octavo {

// 64-byte aligned and uninitialised; valid as long as the pointer. Allocations lie side by side in
// regions of several pages, because a page of 2 MiB is larger than most matrices of a small model;
// a region goes back to the system with the last of its allocations. Weights that lie so are read a
// fifth faster: fewer translations, and the hardware's prefetching ends at each page. Any thread.
std::shared_ptr<std::byte> AllocateInLargePages(size_t size);

}  // namespace octavo
