// INT4 x INT8 -> f32 with a scale for each group of weights: y[i,j] = sum over groups g of
// row_scale[i,g] * weight_scale[j,g] * sum_{k in g} q[i,k] * (w[j,k] - zero_point[j,g]), + bias[j].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"
#include "kernels/matmul_coded/matmul_coded.h"
#include "tensor/tensor.h"

namespace octavo {

struct Int4MatmulKernel;  // one line of kernels.inc

// Quantized activations q [m, k], row-major.
struct Int4Rows {
  const int8_t* codes = nullptr;  // [m, k]
  const float* scales = nullptr;  // [m], or [m, groups] where `scales_of_groups`
  bool scales_of_groups = false;
  int64_t m = 0;
};

// Weights w [n, k] of four bits in the layout of the kernel that will read them, packed once.
class Int4Weights {
 public:
  Int4Weights() = default;
  // `parts` are stacked along n: matrices of nibbles u that stand for u - 8 (the table is not
  // read), with the same k. `input_group` is that of the activations' scales: 0, one for a row, or
  // a size that divides the weights' groups. Groups are multiples of 8, or whole rows.
  static Int4Weights Pack(std::span<const CodedMatrix> parts, int64_t input_group, Isa isa,
                          ThreadPool& pool);
  // Whether Pack takes such a matrix.
  static bool Takes(const CodedMatrix& matrix, int64_t input_group);

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  int64_t groups() const { return (k_ + group_ - 1) / group_; }
  const Int4MatmulKernel& kernel() const { return *kernel_; }
  int64_t owned_bytes() const;

 private:
  friend void MultiplyInt4(const Int4Weights&, const Int4Rows&, std::span<const float>, float*,
                           int64_t, ThreadPool&);
  const Int4MatmulKernel* kernel_ = nullptr;
  int64_t n_ = 0;
  int64_t k_ = 0;
  int64_t group_ = 0;  // columns with the same scales
  Tensor packed_;
  Tensor scales_;   // [groups, n] f32
  Tensor offsets_;  // [groups, n] i32: 8 + zero point; empty: all 8
};

// bias [n] or empty; y [rows.m, n] with ldy floats from row to row. Exactness class: exact. A group
// is summed in int32, in parts of at most 256 columns; each part p adds float(sum) * weight_scale
// to y in float32, in order; then y is multiplied by the row's scale, and the bias is added. With
// scales of groups a part adds float(sum) * (weight_scale * row_scale) instead. Each operation is
// rounded once on every ISA: bit-equal results whatever the kernel and the number of threads.
void MultiplyInt4(const Int4Weights& weights, const Int4Rows& rows, std::span<const float> bias,
                  float* y, int64_t ldy, ThreadPool& pool);

}  // namespace octavo
