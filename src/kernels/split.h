// How row-wise kernels share their rows among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"

namespace octavo {

// Elements a task should have at least: some microseconds of work, well above the cost of handing
// it out.
inline constexpr int64_t kElementsPerTask = 8192;

// Calls row(i) for each i in [0, m), neighbours together in tasks of about the same size.
template <typename Row>
void ForEachRow(ThreadPool& pool, int64_t m, int64_t row_elements, const Row& row) {
  const int64_t tasks =
      std::clamp<int64_t>(m * row_elements / kElementsPerTask, 1, std::max<int64_t>(m, 1));
  const int64_t rows = (m + tasks - 1) / tasks;
  pool.ParallelFor(tasks, [&](int64_t task) {
    const int64_t end = std::min(m, (task + 1) * rows);
    for (int64_t i = task * rows; i < end; ++i) row(i);
  });
}

}  // namespace octavo
