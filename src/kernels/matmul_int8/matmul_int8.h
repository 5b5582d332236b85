// INT8 x INT8 -> f32: y[i,j] = row_scale[i] * weight_scale[j] * (sum_k (q[i,k] - zero_point[i]) *
// w[j,k]) + bias[j].
#pragma once

#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace octavo {

struct Int8MatmulKernel;  // one line of kernels.inc

// Quantized activations q [m, k], row-major: what they stand for is scales[i] * (codes[i, l] -
// zero_points[i]). One scale for all rows (static quantization) is repeated for each.
struct Int8Rows {
  const int8_t* codes = nullptr;         // [m, k]
  const float* scales = nullptr;         // [m]
  const int32_t* zero_points = nullptr;  // [m], each in [-128, 127]; null: all zero (symmetric)
  int64_t m = 0;
};

// Weights w [n, k] in the layout of the kernel that will read them, packed once, one copy; and the
// sums over k that zero points need.
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
  int64_t packed_bytes() const { return packed_.num_bytes() + column_sums_.num_bytes(); }

 private:
  friend void MultiplyInt8(const Int8Weights&, const Int8Rows&, std::span<const float>,
                           std::span<const float>, float*, int64_t, ThreadPool&);
  const Int8MatmulKernel* kernel_ = nullptr;
  int64_t n_ = 0;
  int64_t k_ = 0;
  Tensor packed_;
  Tensor column_sums_;  // [n] int32
};

// weight_scales [n]; bias [n] or empty; y [rows.m, n] with ldy floats from row to row. Exactness
// class: exact. The sum, acc = sum_k q w - zero_point * sum_k w = sum_k (q - zero_point) w, is
// exact in int32 (at most 255 * 128 * 65536 < 2^31); the epilogue is float(acc) * (row_scale *
// weight_scale) [+ bias], each operation rounded once, in that order, on every ISA: bit-equal
// results whatever the kernel and the number of threads.
void MultiplyInt8(const Int8Weights& weights, const Int8Rows& rows,
                  std::span<const float> weight_scales, std::span<const float> bias, float* y,
                  int64_t ldy, ThreadPool& pool);

}  // namespace octavo
