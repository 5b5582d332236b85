// x += y for rows of activations: the residual stream takes a layer's result.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace octavo {

// x [m, k] with ldx, y [m, k] with ldy floats from row to row. Exactness class: exact.
void AddRows(const float* y, int64_t ldy, int64_t m, int64_t k, float* x, int64_t ldx,
             ThreadPool& pool);

}  // namespace octavo
