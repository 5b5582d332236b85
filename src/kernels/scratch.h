// Working memory of the calling thread, kept from task to task.
#pragma once

#include <cstdint>

namespace octavo {

// At least `count` floats, 64-byte aligned, uninitialised, valid until the thread asks again.
float* ThreadScratch(int64_t count);

}  // namespace octavo
