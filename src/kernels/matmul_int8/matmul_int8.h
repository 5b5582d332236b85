// INT8 x INT8 -> f32: y[i,j] = row_scale[i] * weight_scale[j] * (sum_k q[i,k] * w[j,k]) + bias[j].
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace octavo {

struct Int8MatmulKernel;  // one line of kernels.inc

// Weights w [n, k] in the layout of the kernel that will read them: packed once, one copy.
class Int8Weights {
 public:
  Int8Weights() = default;
  // Chooses the best kernel that `isa` allows and packs for it. Several row blocks (q, k, v) may be
  // packed as one matrix: `parts` are row-major [n_i, k] blocks stacked along n. Any n, k >= 1; k
  // <= 65536 (the int32 accumulator's bound).
  static Int8Weights Pack(std::span<const TensorView> parts, Isa isa, ThreadPool& pool);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const Int8MatmulKernel& kernel() const { return *kernel_; }
  int64_t packed_bytes() const { return packed_.num_bytes(); }

 private:
  friend void MultiplyInt8(const Int8Weights&, const int8_t*, const float*, int64_t,
                           std::span<const float>, std::span<const float>, float*, int64_t,
                           ThreadPool&);
  const Int8MatmulKernel* kernel_ = nullptr;
  int64_t n_ = 0;
  int64_t k_ = 0;
  Tensor packed_;
};

// q [m, k] row-major int8 with row_scales [m]; weight_scales [n]; bias [n] or empty; y [m, n] with
// ldy floats from row to row. Exactness class: exact. The sum is exact in int32; the epilogue is
// float(acc) * (row_scale * weight_scale) [+ bias], each operation rounded once, in that order, on
// every ISA: bit-equal results whatever the kernel and the number of threads.
void MultiplyInt8(const Int8Weights& weights, const int8_t* q, const float* row_scales, int64_t m,
                  std::span<const float> weight_scales, std::span<const float> bias, float* y,
                  int64_t ldy, ThreadPool& pool);

}  // namespace octavo
