// How row-wise kernels share their rows among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace octavo {

// Elements a task should have at least: some microseconds of work, well above the cost of handing
// it out.
inline constexpr int64_t kElementsPerTask = 16384;

// Calls row(i) for each i in [0, m), neighbours together in one task.
template <typename Row>
void ForEachRow(ThreadPool& pool, int64_t m, int64_t row_elements, const Row& row) {
  const int64_t rows = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, row_elements));
  pool.ParallelFor((m + rows - 1) / rows, [&](int64_t task) {
    const int64_t end = std::min(m, (task + 1) * rows);
    for (int64_t i = task * rows; i < end; ++i) row(i);
  });
}

}  // namespace octavo
