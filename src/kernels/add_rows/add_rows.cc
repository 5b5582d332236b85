#include "kernels/add_rows/add_rows.h"

#include "kernels/split.h"

namespace octavo {

// Memory sets the pace, so the compiler's vectors of the baseline are wide enough.
void AddRows(const float* y, int64_t ldy, int64_t m, int64_t k, float* x, int64_t ldx,
             ThreadPool& pool) {
  ForEachRow(pool, m, k, [&](int64_t i) {
    const float* from = y + i * ldy;
    float* to = x + i * ldx;
    for (int64_t j = 0; j < k; ++j) to[j] += from[j];
  });
}

}  // namespace octavo
