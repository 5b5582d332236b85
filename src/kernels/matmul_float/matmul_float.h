// Dense matmul: y[i,j] = sum_k x[i,k] * w[j,k] + bias[j], f32 activations and sums, weights f32,
// bf16 or f16 as they are stored.
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace octavo {

// x [m, k] with ldx floats from row to row; w [n, k] row-major (F32, BF16 or F16), read where it
// lies, never copied whole; bias [n] or empty; y [m, n] with ldy. Few rows: dot products over the
// stored rows. Many rows: panels of w packed as f32, by our kernel (panels.h), or oneDNN's sgemm on
// fixed tiles where there is none. Results do not depend on the number of threads. Exactness class:
// bounded (|error| <= about 2 k eps sum|x w|).
void MultiplyFloat(const TensorView& w, std::span<const float> bias, const float* x, int64_t ldx,
                   int64_t m, float* y, int64_t ldy, Isa isa, ThreadPool& pool);

// c [m, n] = alpha * op(a) * op(b) + beta * c on one thread, row-major, op transposes when asked:
// oneDNN's sgemm behind a seam, for callers that cut their own tiles (Cholesky), or our panel
// kernel where b is [k, n <= kPanelColumns] with ldb = kPanelColumns and beta = 1 (GPTQ's block
// update).
void SgemmTile(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
               const float* a, int64_t lda, const float* b, int64_t ldb, float beta, float* c,
               int64_t ldc, Isa isa);

}  // namespace octavo
